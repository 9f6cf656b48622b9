import assert from "node:assert/strict";
import client from "postgres";
import { startPgBouncer } from "../../tools/servers/pgbouncer.ts";
import { testServer } from "../../tools/servers/test_server.ts";
import { startPostgres } from "../../tools/servers/postgres.ts";
import { ClosedError } from "../errors.ts";
import { given, isAlive, isFree, lockKey } from "./locks_for_test.ts";
import { postgres } from "./mod.ts";
import { aborted, isDriverError, kill, pidOf, serverTest, until } from "./server_for_test.ts";

const TIMES = 20;
const isRefused = isDriverError("unusable", /^Cannot hold advisory locks .*pool_mode = session/);

serverTest("locks can be enabled at a server, with one connection, while it is busy or not", async (
  server,
) => {
  await enableOften(server, (enabling) => enabling);
});

serverTest("locks cannot be enabled before the database is open", async (server) => {
  await assert.rejects(postgres(server).enableLocks(), ClosedError);
});

testServer("locks can be enabled behind PgBouncer by session", async () => {
  await using server = await startPostgres();
  await using pooler = await startPgBouncer({ postgres: server.url, poolMode: "session" });
  await enableOften(pooler.url, (enabling) => enabling);
});

for (const server_round_robin of ["0", "1"]) {
  testServer(
    `locks are refused behind PgBouncer by transaction, server_round_robin = ${server_round_robin}`,
    async () => {
      await using server = await startPostgres();
      await using pooler = await startPgBouncer({
        postgres: server.url,
        poolMode: "transaction",
        settings: { server_round_robin },
      });
      await enableOften(pooler.url, (enabling) => assert.rejects(enabling, isRefused));
    },
  );
}

for (const pool_mode of ["transaction", "statement"]) {
  testServer(`locks are refused behind PgBouncer by ${pool_mode} with one connection`, async () => {
    await using server = await startPostgres();
    await using pooler = await startPgBouncer({
      postgres: server.url,
      poolMode: "transaction",
      settings: { pool_mode, default_pool_size: "1" },
    });
    const driver = postgres(pooler.url, { pgBouncer: true, connections: 1 });
    await driver.open();
    for (let time = 0; time < TIMES; time++) await assert.rejects(driver.enableLocks(), isRefused);
    await driver.close();
  });
}

testServer("behind PgBouncer by session a lock is one, and dies with its connection", async () => {
  await using server = await startPostgres();
  await using pooler = await startPgBouncer({ postgres: server.url, poolMode: "session" });
  const witness = postgres(server.url);
  const driver = postgres(pooler.url, { pgBouncer: true });
  await Promise.all([witness.open(), driver.open()]);
  const session = await driver.session();
  for (const ends of ["commit", "rollback"] as const) {
    const key = lockKey();
    await session.begin();
    const holder = given(await session.tryLock(key));
    assert.equal(holder, BigInt(Number(await pidOf(session))));
    await session.checkpoint!();
    for (const other of [driver, witness]) assert(!await isFree(other, key));
    await session[ends]();
    for (const other of [driver, witness]) assert(await isFree(other, key));
  }
  await session.begin();
  const unconfirmed = given(await session.tryLock(lockKey()));
  await session.query("SELECT pg_advisory_unlock_all()");
  await session.commit();
  await until(async () => !await isAlive(witness, unconfirmed));
  const key = lockKey();
  await session.begin();
  await kill(witness, given(await session.tryLock(key)));
  await aborted(session.lost);
  await until(() => isFree(witness, key));
  await session.release();
  await Promise.all([witness.close(), driver.close()]);
});

/** Enables locks with a client of our own and one of the caller's, idle and under load. */
async function enableOften(
  url: string,
  check: (enabling: Promise<void>) => Promise<void>,
): Promise<void> {
  const sql = client(url, { max: 3, prepare: false });
  const drivers = [
    postgres(url, { pgBouncer: true, connections: 1 }),
    postgres({ sql }, { prepare: false }),
  ];
  for (const load of [0, 8]) {
    await using _load = await loadServer(url, load);
    for (const driver of drivers) {
      for (let time = 0; time < TIMES; time++) {
        await driver.open();
        await check(driver.enableLocks());
        await driver.close();
      }
    }
  }
  await sql.end();
}

/** Keeps a server busy with short transactions. */
async function loadServer(url: string, connections: number): Promise<AsyncDisposable> {
  const sql = client(url, { max: Math.max(1, connections), prepare: false });
  let isOver = false;
  const work = Array.from({ length: connections }, async () => {
    while (!isOver) await sql.begin((transaction) => transaction`SELECT pg_sleep(0.002)`);
  });
  await sql`SELECT 1`;
  return {
    [Symbol.asyncDispose]: async () => {
      isOver = true;
      await Promise.all(work);
      await sql.end();
    },
  };
}
