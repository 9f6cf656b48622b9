import assert from "node:assert/strict";
import client from "postgres";
import type { Driver, Session } from "../driver/driver.ts";
import { postgresDriver } from "./driver.ts";
import { given, isAlive, isFree, lockKey, lockTest } from "./locks_for_test.ts";
import { openOwnClient } from "./own_client.ts";
import type { PostgresSource } from "./pool.ts";
import {
  aborted,
  firstRow,
  isDriverError,
  kill,
  Network,
  query,
  serverTest,
  tableName,
  until,
  withDriver,
} from "./server_for_test.ts";

lockTest("a lock is free when its connection dies, and nothing more is sent", async (
  { driver, witness },
) => {
  for (let round = 0; round < 5; round++) {
    const key = lockKey();
    const session = await begin(driver);
    const holder = given(await session.tryLock(key));
    await kill(witness, holder);
    await aborted(session.lost);
    const refused = isDriverError("disconnected", /nothing more was sent/);
    await assert.rejects(session.tryLock(key), refused);
    await assert.rejects(session.tryLock(lockKey()), refused);
    await assert.rejects(session.checkpoint!(), refused);
    await assert.rejects(session.commit(), refused);
    await session.rollback();
    await session.release();
    await until(() => isFree(witness, key));
  }
});

for (const end of ["checkpoint", "commit", "rollback"] as const) {
  lockTest(`a connection that dies around a ${end} leaves no lock`, async (
    { driver, witness },
  ) => {
    for (let round = 0; round < 15; round++) {
      const key = lockKey();
      const session = await beginAnew(driver);
      const killed = kill(witness, given(await session.tryLock(key)));
      await new Promise((resolve) => setTimeout(resolve, round % 3));
      await session[end]!().catch(isDriverError("disconnected"));
      await session.release();
      await killed;
      await until(() => isFree(witness, key));
    }
  });
}

for (const end of ["commit", "rollback", "release"] as const) {
  lockTest(`a lock whose return is not confirmed by ${end} ends the connection`, async (
    { driver, witness },
  ) => {
    for (let round = 0; round < 5; round++) {
      const session = await begin(driver);
      const holder = given(await session.tryLock(lockKey()));
      const key = lockKey();
      given(await session.tryLock(key));
      await session.query("SELECT pg_advisory_unlock(hashtextextended($1, 0))", [key]);
      await session[end]();
      await until(async () => !await isAlive(witness, holder));
      assert(!session.lost.aborted, "the transaction had ended before");
      await session.begin();
      await session.release();
      assert.deepEqual(await firstRow(driver, "SELECT 1 AS one"), { one: 1 });
    }
  });
}

for (const end of ["commit", "rollback"] as const) {
  lockTest(`a lock whose return fails at ${end} ends the connection`, async (
    { driver, witness },
  ) => {
    const schema = tableName();
    await query(witness, `CREATE SCHEMA ${schema}`);
    await query(
      witness,
      `CREATE FUNCTION ${schema}.pg_advisory_unlock(bigint) RETURNS boolean LANGUAGE sql ` +
        `AS 'SELECT 1 / 0 = 0'`,
    );
    const [session, setting] = [await begin(driver), `SET search_path = ${schema}, pg_catalog`];
    const holder = given(await session.tryLock(lockKey()));
    await session.query(setting);
    await session.checkpoint!();
    await session[end]();
    await until(async () => !await isAlive(witness, holder));
    assert(!session.lost.aborted, "the transaction had ended before");
    await query(witness, `DROP SCHEMA ${schema} CASCADE`);
  });
}

serverTest(
  "the caller's statements do not notice that a connection with locks is ended",
  (server) =>
    withDriver(server, {}, async (witness) => {
      const sql = client(server, { max: 1, onnotice: () => {} });
      const driver = impatientDriver({ theirs: sql });
      await driver.open();
      for (let round = 0; round < 10; round++) {
        const session = await begin(driver);
        const holder = given(await session.tryLock(lockKey()));
        await session.query("SELECT pg_advisory_unlock_all()");
        await session.commit();
        assert.deepEqual([...await sql`SELECT 1 AS one`], [{ one: 1 }]);
        assert(!await isAlive(witness, holder));
      }
      await driver.close();
      await sql.end();
    }),
);

serverTest(
  "a connection that wakes up with a lock is ended; without one it is kept",
  (server) =>
    withDriver(server, {}, async (witness) => {
      const sql = client(server, { max: 1, onnotice: () => {} });
      const driver = impatientDriver({ theirs: sql });
      await driver.open();
      for (const locks of [false, true]) {
        const key = lockKey();
        const session = await begin(driver);
        const { pid } = await firstRow(session, "SELECT pg_backend_pid() AS pid");
        if (locks) given(await session.tryLock(key));
        await assert.rejects(
          session.query("SELECT pg_sleep(0.6)"),
          isDriverError("disconnected", /no answer within 300 ms/),
        );
        assert(session.lost.aborted);
        await session.release();
        const [row] = await sql`SELECT pg_backend_pid() AS pid`;
        assert.equal(row!.pid === pid, !locks);
        assert.equal(await isAlive(witness, BigInt(Number(pid))), !locks);
        assert(await isFree(witness, key));
      }
      await driver.close();
      await sql.end();
    }),
);

serverTest("giving a lock back ends in bounded time when the network falls silent", async (
  server,
) => {
  await using network = new Network(server);
  const address = network.address;
  const driver = impatientDriver(() =>
    openOwnClient({ address, connections: 1, prepare: true, startup: {} })
  );
  await driver.open();
  const session = await begin(driver);
  given(await session.tryLock(lockKey()));
  network.fallSilent();
  await session.rollback();
  assert(!session.lost.aborted, "the transaction had ended before");
  await session.begin();
  given(await session.tryLock(lockKey()));
  await session.commit();
  const closing = driver.close();
  await network[Symbol.asyncDispose]();
  await closing;
});

serverTest(
  "a lock is kept while nothing is done, and after a checkpoint",
  (server) =>
    withDriver(server, {}, async (witness) => {
      const sql = client(server, {
        max: 1,
        connection: { idle_in_transaction_session_timeout: 300 },
      });
      const driver = impatientDriver({ theirs: sql });
      await driver.open();
      const key = lockKey();
      const session = await begin(driver);
      given(await session.tryLock(key));
      for (let round = 0; round < 2; round++) {
        await new Promise((resolve) => setTimeout(resolve, 700));
        assert(!session.lost.aborted, String(session.lost.reason));
        assert(!await isFree(witness, key));
        await session.checkpoint!();
      }
      await session.commit();
      assert(await isFree(witness, key));
      await driver.close();
      await sql.end();
    }),
);

function impatientDriver(connect: PostgresSource["connect"]): Driver {
  return postgresDriver({
    label: "under test",
    connections: 1,
    prepare: true,
    patience: 300,
    heartbeat: 100,
    secondsToEnd: 0.5,
    localSettings: {},
    connect,
  });
}

async function begin(driver: Driver): Promise<Session> {
  const session = await driver.session();
  await session.begin();
  return session;
}

/** Begins also where the client still has a connection whose end it has not noticed. */
async function beginAnew(driver: Driver): Promise<Session> {
  const session = await driver.session();
  await until(() =>
    session.begin().then(() => true, (error) => !isDriverError("disconnected")(error))
  );
  return session;
}
