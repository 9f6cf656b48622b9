import type { SqlRow } from "../driver/driver.ts";
import type { TestDatabase, TestSql } from "../../testing/conformance/test_database.ts";
import { testDriver } from "../../testing/conformance/test_driver.ts";
import { lockName } from "./lock_name.ts";
import { mysql, mysqlTx } from "./mod.ts";

for (const [name, variable] of [["MariaDB", "MARIADB"], ["MySQL", "MYSQL"]] as const) {
  const url = Deno.env.get(`HOLDFAST_TEST_${variable}`);
  if (url !== undefined) testDriver(name, () => ownDatabase(url));
  else {
    Deno.test(`${name}: the conformance suite`, () => {
      if (Deno.env.get("CI") === "true") throw new Error(`HOLDFAST_TEST_${variable} is not set`);
      console.log(`skipped: ${name} (set HOLDFAST_TEST_${variable} to the address of a server)`);
    });
  }
}

const SQL: TestSql = {
  time: (time) => `FROM_UNIXTIME(${time / 1000})`,
  sleep: (seconds) => `SLEEP(${seconds}) AS slept`,
  sessions: "SELECT count(*) AS sessions FROM information_schema.PROCESSLIST " +
    "WHERE DB = DATABASE() AND ID <> CONNECTION_ID()",
  later: (seconds) => `locked_until + INTERVAL ${seconds} SECOND`,
  locks: (key) => `SELECT IS_USED_LOCK(${lockName(`'${key}'`)}) IS NOT NULL AS held`,
};

/** A database of its own for each test, gone when the test ends. */
async function ownDatabase(server: string): Promise<TestDatabase> {
  const name = `holdfast_${crypto.randomUUID().replaceAll("-", "")}`;
  await administer(server, `CREATE DATABASE ${name}`);
  const address = new URL(server);
  address.pathname = `/${name}`;
  return {
    connect: () => mysql(address),
    address: `mysql:${address}`,
    write: async (delivery, text) => void await mysqlTx(delivery).execute(text),
    locksRows: true,
    returnsIds: false,
    sharedLock: {
      lock: "SELECT GET_LOCK(CONCAT('shop-', :key), 0)",
      unlock: "SELECT RELEASE_LOCK(CONCAT('shop-', :key))",
    },
    sql: SQL,
    cut: () => cutAll(server, name),
    [Symbol.asyncDispose]: async () => void await administer(server, `DROP DATABASE ${name}`),
  };
}

/** Kills every connection to a database. */
async function cutAll(server: string, database: string): Promise<void> {
  const connections = await administer(
    server,
    `SELECT id FROM information_schema.processlist WHERE db = '${database}'`,
  );
  for (const { id } of connections) await administer(server, `KILL ${id}`).catch(() => {});
}

async function administer(server: string, text: string): Promise<readonly SqlRow[]> {
  const driver = mysql(server);
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
