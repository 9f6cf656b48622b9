import assert from "node:assert/strict";
import client from "mysql2";
import { readUrl } from "./address.ts";
import { mysqlDriver } from "./driver.ts";
import { lockName } from "./lock_name.ts";
import { begin, given, isAlive, isFree, isUnused, lockTest } from "./locks_for_test.ts";
import { mysql, type MysqlDriver } from "./mod.ts";
import { connect } from "./own_client.ts";
import type { MysqlSource } from "./pool.ts";
import {
  aborted,
  connectionOf,
  firstRow,
  isDriverError,
  kill,
  serverTest,
  until,
  withDriver,
} from "./server_for_test.ts";

lockTest("a lock is free when its connection dies, and nothing more is sent", async (
  { driver, witness, lockKey },
) => {
  for (let round = 0; round < 5; round++) {
    const key = lockKey();
    const session = await begin(driver);
    await kill(witness, Number(given(await session.tryLock(key))));
    await aborted(session.lost);
    const refused = isDriverError("disconnected", /nothing more was sent/);
    await assert.rejects(session.tryLock(key), refused);
    await assert.rejects(session.tryLock(lockKey()), refused);
    await assert.rejects(session.checkpoint!(), refused);
    await assert.rejects(session.commit(), refused);
    await session.rollback();
    await session.release();
    await until(() => isUnused(witness, key));
  }
});

for (const end of ["checkpoint", "commit", "rollback", "release"] as const) {
  lockTest(`a connection that dies around a ${end} leaves no lock`, async (
    { driver, witness, lockKey },
  ) => {
    for (let round = 0; round < 15; round++) {
      const key = lockKey();
      const session = await begin(driver);
      const killed = kill(witness, Number(given(await session.tryLock(key))));
      await new Promise((resolve) => setTimeout(resolve, round % 3));
      // MySQL interrupts the statement first, and then ends the connection.
      await session[end]!().catch((error) => assert.match(String(error), /DriverError/));
      await session.release();
      await killed;
      await until(() => isUnused(witness, key));
    }
  });
}

for (const end of ["commit", "rollback", "release"] as const) {
  lockTest(`a lock whose return is not confirmed by ${end} ends the connection`, async (
    { driver, witness, lockKey },
  ) => {
    const sabotage = [
      "SELECT RELEASE_ALL_LOCKS() AS released",
      `SELECT RELEASE_LOCK(${lockName("?")}) AS released`,
      // The name of the lock is another one in another database.
      "USE information_schema",
    ];
    for (const text of sabotage) {
      const key = lockKey();
      const session = await begin(driver);
      const holder = given(await session.tryLock(lockKey()));
      given(await session.tryLock(key));
      await session.query(text, text.includes("?") ? [key] : []);
      await session[end]();
      await until(async () => !await isAlive(witness, holder));
      assert(!session.lost.aborted, "the transaction had ended before");
      await session.begin();
      assert.notEqual(BigInt(await connectionOf(session)), holder);
      await session.release();
      assert.deepEqual(await firstRow(driver, "SELECT 'one' AS one"), { one: "one" });
    }
  });
}

lockTest("a lock taken by a second session is not given back for the first", async (
  { driver, witness, lockKey },
) => {
  const key = lockKey();
  const [session, other] = [await begin(driver), await begin(driver)];
  const holder = given(await session.tryLock(key));
  await session.query("SELECT RELEASE_ALL_LOCKS() AS released");
  given(await other.tryLock(key));
  await session.release();
  await until(async () => !await isAlive(witness, holder));
  assert(!await isFree(witness, key));
  await other.release();
});

lockTest("a connection whose lock is in doubt is ended, and its locks with it", async (
  { driver, witness, lockKey },
) => {
  const key = lockKey();
  const session = await begin(driver);
  const holder = given(await session.tryLock(key));
  await assert.rejects(session.tryLock("x".repeat(80_000_000)), isDriverError("constraint"));
  assert(!await isFree(witness, key));
  await session.rollback();
  await until(async () => !await isAlive(witness, holder));
  assert(await isUnused(witness, key));
  await session.release();
});

serverTest(
  "a session without a database has no locks, and its connection is ended",
  (server) =>
    withDriver(server, {}, async (witness) => {
      const { database: _, ...address } = readUrl(server);
      await withOpen(mysql(address), async (driver) => {
        const session = await begin(driver);
        const connection = BigInt(await connectionOf(session));
        await assert.rejects(
          session.tryLock("key"),
          isDriverError("other", /name a database where you connect/),
        );
        await session.release();
        await until(async () => !await isAlive(witness, connection));
      });
    }),
);

for (const whose of ["our own", "the caller's"] as const) {
  serverTest(`a lock that is not given back in time ends the connection, on ${whose} pool`, (
    server,
  ) =>
    withDriver(server, {}, async (witness) => {
      const pool = client.createPool({ uri: server, connectionLimit: 1 });
      const source = whose === "our own" ? () => connect(readUrl(server)) : { theirs: pool };
      await withOpen(impatientDriver(source), async (driver) => {
        const key = `key ${crypto.randomUUID()}`;
        const session = await begin(driver);
        const holder = given(await session.tryLock(key));
        await assert.rejects(
          session.query("SELECT SLEEP(1) AS slept"),
          isDriverError("disconnected", /no answer within 300 ms/),
        );
        assert(session.lost.aborted);
        await session.release();
        const next = await begin(driver);
        assert.notEqual(BigInt(await connectionOf(next)), holder);
        await next.release();
        await until(() => isUnused(witness, key));
      });
      await pool.promise().end();
    }));
}

serverTest(
  "a lock is kept while nothing is done, and after a checkpoint",
  (server) =>
    withDriver(server, {}, (witness) =>
      withOpen(
        impatientDriver(() => connect(readUrl(server))),
        async (driver) => {
          const key = `key ${crypto.randomUUID()}`;
          const session = await driver.session();
          await session.query("SET wait_timeout = 1 /*M! , idle_transaction_timeout = 1 */");
          await session.begin();
          given(await session.tryLock(key));
          for (let round = 0; round < 2; round++) {
            await new Promise((resolve) => setTimeout(resolve, 1500));
            assert(!session.lost.aborted, String(session.lost.reason));
            assert(!await isFree(witness, key));
            await session.checkpoint!();
          }
          await session.commit();
          assert(await isUnused(witness, key));
          await session.release();
        },
      )),
);

function impatientDriver(source: MysqlSource["connect"]): MysqlDriver {
  return mysqlDriver({
    label: "for a test",
    connections: 1,
    connect: source,
    statementTimeout: 5000,
    patience: 300,
    heartbeat: 100,
  });
}

async function withOpen(
  driver: MysqlDriver,
  test: (driver: MysqlDriver) => Promise<void>,
): Promise<void> {
  await driver.open();
  try {
    await test(driver);
  } finally {
    await driver.close();
  }
}
