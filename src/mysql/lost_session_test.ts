import assert from "node:assert/strict";
import {
  aborted,
  activityOf,
  connectionOf,
  firstRow,
  isDriverError,
  kill,
  query,
  serverTest,
  until,
  withDriver,
  withTable,
} from "./server_for_test.ts";

serverTest("a session whose connection dies while it is idle rejects, and the pool goes on", (
  server,
) =>
  withDriver(server, { connections: 2 }, async (driver) => {
    for (let round = 0; round < 5; round++) {
      const session = await driver.session();
      await session.begin();
      await kill(driver, await connectionOf(session));
      await aborted(session.lost);
      assert(isDriverError("disconnected")(session.lost.reason));
      const refused = isDriverError("disconnected", /nothing more was sent/);
      await assert.rejects(session.query("SELECT 1"), refused);
      await assert.rejects(session.queryEach("SELECT ?", [[1], [2]]), refused);
      await assert.rejects(session.commit(), refused);
      await assert.rejects(session.begin(), refused);
      await session.rollback();
      await session.release();
      assert.equal((await firstRow(driver, "SELECT 'one' AS one")).one, "one");
    }
  }));

serverTest(
  "a lost session gives its place in the pool away before it is released",
  (server) =>
    withDriver(
      server,
      {},
      (witness) =>
        withDriver(server, { connections: 1 }, async (driver) => {
          const [lost, next] = [await driver.session(), await driver.session()];
          await lost.begin();
          await kill(witness, await connectionOf(lost));
          await next.begin();
          await next.release();
          await lost.release();
        }),
    ),
);

serverTest(
  "nothing is sent at the moment a connection dies",
  (server) =>
    withDriver(server, { connections: 4 }, async (driver) => {
      for (let round = 0; round < 20; round++) {
        const session = await driver.session();
        await session.begin();
        const killed = kill(driver, await connectionOf(session));
        const calls: Promise<unknown>[] = [];
        while (!session.lost.aborted) {
          calls.push(session.query("SELECT 1 + ?", [1]).catch(anyError));
          await new Promise((resolve) => setTimeout(resolve, round % 3));
        }
        await Promise.all(calls);
        await assert.rejects(session.commit(), isDriverError("disconnected"));
        await session.release();
        await killed;
      }
      await query(driver, "SELECT 1");
    }),
);

/** MySQL interrupts the statement first, and then ends the connection. */
function anyError(error: unknown): void {
  assert.match(String(error), /DriverError/);
}

serverTest(
  "a statement in flight when its connection dies is rejected",
  (server) =>
    withDriver(server, { connections: 3 }, async (driver) => {
      const session = await driver.session();
      await session.begin();
      const connection = await connectionOf(session);
      const sleeping = assert.rejects(
        session.query("SELECT SLEEP(?)", [20]),
        (error) => /^DriverError: Cannot run SELECT SLEEP\(\?\): /.test(String(error)),
      );
      await until(async () => await activityOf(driver, connection) === "User sleep");
      await kill(driver, connection);
      await sleeping;
      await aborted(session.lost);
      await session.release();

      const single = await driver.session();
      const other = await connectionOf(single);
      const rejected = assert.rejects(single.query("SELECT SLEEP(20)"));
      await until(async () => await activityOf(driver, other) === "User sleep");
      await kill(driver, other);
      await rejected;
      await until(async () => await activityOf(driver, other) === "");
      await single.query("SELECT 1");
      assert.notEqual(await connectionOf(single), other);
      assert(!single.lost.aborted);
      await single.release();
    }),
);

serverTest(
  "the outcome of a COMMIT that is cut off is unknown, and said to be",
  (server) =>
    withDriver(
      server,
      { connections: 2 },
      (driver) =>
        withTable(driver, "id BIGINT PRIMARY KEY", async (table) => {
          const session = await driver.session();
          await session.begin();
          const connection = await connectionOf(session);
          await session.query(`INSERT INTO ${table} VALUES (1)`);
          // A commit waits for this lock, and this lock for no transaction.
          const locker = await driver.session();
          await locker.query("FLUSH TABLES WITH READ LOCK");
          const committing = assert.rejects(
            session.commit(),
            isDriverError("disconnected", /Cannot tell whether .* outcome is unknown/),
          );
          await until(async () =>
            /lock/i.test(String(
              (await locker.query(
                `SELECT state FROM information_schema.processlist WHERE id = ${connection}`,
              )).rows[0]?.state,
            ))
          );
          await locker.query(`KILL ${connection}`);
          await committing;
          await aborted(session.lost);
          await session.release();
          await locker.query("UNLOCK TABLES");
          await locker.release();
        }),
    ),
);
