import assert from "node:assert/strict";
import type { SqlRow } from "../driver/driver.ts";
import { postgres as connect, postgresTx } from "./mod.ts";
import type { TestDatabase, TestSql } from "../../testing/conformance/test_database.ts";
import { testDriver } from "../../testing/conformance/test_driver.ts";

const url = Deno.env.get("HOLDFAST_TEST_POSTGRES");
if (url !== undefined) testDriver("Postgres", () => ownDatabase(url));
else {
  Deno.test("Postgres: the conformance suite", () => {
    if (Deno.env.get("CI") === "true") throw new Error("HOLDFAST_TEST_POSTGRES is not set");
    console.log("skipped: Postgres (set HOLDFAST_TEST_POSTGRES to the address of a server)");
  });
}

const SIMPLE = { prepare: false, simple: false };
const SQL: TestSql = {
  time: (time) => `to_timestamp(${time / 1000})`,
  sleep: (seconds) => `(SELECT 1 FROM pg_sleep(${seconds})) AS slept`,
  sessions: "SELECT count(*) AS sessions FROM pg_stat_activity " +
    "WHERE datname = current_database() AND pid <> pg_backend_pid()",
  later: (seconds) => `locked_until + interval '${seconds} seconds'`,
  locks: (key) =>
    `SELECT count(*) AS held FROM pg_locks CROSS JOIN hashtextextended('${key}', 0) AS hash ` +
    `WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database ` +
    `WHERE datname = current_database()) AND objsubid = 1 ` +
    `AND (classid::bigint << 32 | objid::bigint) = hash`,
};

/** A database of its own for each test, gone when the test ends. */
async function ownDatabase(server: string): Promise<TestDatabase> {
  const name = `holdfast_${crypto.randomUUID().replaceAll("-", "")}`;
  await administer(server, `CREATE DATABASE ${name}`);
  const address = new URL(server);
  address.pathname = `/${name}`;
  return {
    connect: () => connect(address),
    address: `postgres:${address}`,
    write: async (delivery, text) => void await postgresTx(delivery).unsafe(text, [], SIMPLE),
    locksRows: true,
    returnsIds: true,
    sharedLock: {
      lock: "SELECT pg_try_advisory_lock(42, hashtext(:key))",
      unlock: "SELECT pg_advisory_unlock(42, hashtext(:key))",
    },
    sql: SQL,
    cut: async () => void await administer(server, cutAll(name)),
    [Symbol.asyncDispose]: async () => {
      const locks = await administer(server, advisoryLocksIn(name));
      await administer(server, `DROP DATABASE ${name} WITH (FORCE)`);
      assert.deepEqual(locks, [], "A test has left advisory locks");
    },
  };
}

function cutAll(database: string): string {
  return `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}'`;
}

function advisoryLocksIn(database: string): string {
  return `SELECT objid FROM pg_locks JOIN pg_database AS d ON d.oid = pg_locks.database ` +
    `WHERE locktype = 'advisory' AND d.datname = '${database}'`;
}

async function administer(server: string, text: string): Promise<readonly SqlRow[]> {
  const driver = connect(server, { connections: 1 });
  await driver.open();
  try {
    const session = await driver.session();
    const { rows } = await session.query(text);
    await session.release();
    return rows;
  } finally {
    await driver.close();
  }
}
