import assert from "node:assert/strict";
import {
  aborted,
  firstRow,
  isDriverError,
  kill,
  pidOf,
  query,
  serverTest,
  tableName,
  until,
  withDriver,
} from "./server_for_test.ts";

serverTest("a session whose connection dies while it is idle rejects, and the pool goes on", (
  server,
) =>
  withDriver(server, { connections: 2 }, async (driver) => {
    for (let round = 0; round < 5; round++) {
      const session = await driver.session();
      await session.begin();
      await kill(driver, await pidOf(session));
      await aborted(session.lost);
      assert(isDriverError("disconnected")(session.lost.reason));
      const refused = isDriverError("disconnected", /nothing more was sent/);
      await assert.rejects(session.query("SELECT 1"), refused);
      await assert.rejects(session.queryEach("SELECT $1::int", [[1], [2]]), refused);
      await assert.rejects(session.commit(), refused);
      await assert.rejects(session.begin(), refused);
      await session.rollback();
      await session.release();
      assert.deepEqual(await firstRow(driver, "SELECT 1 AS one"), { one: 1 });
    }
  }));

serverTest(
  "nothing is sent at the moment a connection dies",
  (server) =>
    withDriver(server, { connections: 4 }, async (driver) => {
      for (let round = 0; round < 20; round++) {
        const session = await driver.session();
        await session.begin();
        const killed = kill(driver, await pidOf(session));
        const calls: Promise<unknown>[] = [];
        while (!session.lost.aborted) {
          calls.push(session.query("SELECT 1").catch(isDriverError("disconnected")));
          await new Promise((resolve) => setTimeout(resolve, round % 3));
        }
        await Promise.all(calls);
        await assert.rejects(session.commit(), isDriverError("disconnected"));
        await session.release();
        await killed;
      }
      assert.deepEqual(await firstRow(driver, "SELECT 1 AS one"), { one: 1 });
    }),
);

serverTest(
  "a statement in flight when its connection dies is rejected",
  (server) =>
    withDriver(server, { connections: 3 }, async (driver) => {
      const session = await driver.session();
      await session.begin();
      const pid = await pidOf(session);
      const sleeping = assert.rejects(
        session.query("SELECT pg_sleep(20)"),
        isDriverError("disconnected", /^Cannot run SELECT pg_sleep\(20\): /),
      );
      await until(() => isSleeping(pid));
      await kill(driver, pid);
      await sleeping;
      assert(session.lost.aborted);
      await session.release();

      const single = driver.session().then((single) => single.query("SELECT pg_sleep(19)"));
      const rejected = assert.rejects(single, isDriverError("disconnected"));
      await until(async () => (await findSleeper()) !== undefined);
      await kill(driver, await findSleeper());
      await rejected;
      assert.deepEqual(await firstRow(driver, "SELECT 1 AS one"), { one: 1 });

      async function isSleeping(pid: unknown): Promise<boolean> {
        const activity = "SELECT wait_event FROM pg_stat_activity WHERE pid = $1::int";
        return (await firstRow(driver, activity, [Number(pid)])).wait_event === "PgSleep";
      }

      async function findSleeper() {
        const sleeper = "SELECT pid FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(19)' " +
          "AND state = 'active' AND wait_event = 'PgSleep'";
        return (await query(driver, sleeper)).rows[0]?.pid;
      }
    }),
);

serverTest(
  "the outcome of a COMMIT that is cut off is unknown, and said to be",
  (server) =>
    withDriver(server, { connections: 2 }, async (driver) => {
      const notes = tableName();
      await query(driver, `CREATE TABLE ${notes} (id int8)`);
      // A deferred trigger makes the COMMIT last.
      await query(
        driver,
        `CREATE FUNCTION ${notes}_wait() RETURNS trigger LANGUAGE plpgsql AS ` +
          `'BEGIN PERFORM pg_sleep(20); RETURN NULL; END'`,
      );
      await query(
        driver,
        `CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON ${notes} DEFERRABLE INITIALLY DEFERRED ` +
          `FOR EACH ROW EXECUTE FUNCTION ${notes}_wait()`,
      );
      const session = await driver.session();
      await session.begin();
      const pid = await pidOf(session);
      await session.query(`INSERT INTO ${notes} VALUES (1)`);
      const committing = assert.rejects(
        session.commit(),
        isDriverError("disconnected", /Cannot tell whether .* outcome is unknown/),
      );
      await until(async () =>
        (await firstRow(driver, "SELECT wait_event FROM pg_stat_activity WHERE pid = $1::int", [
          pid,
        ]))
          .wait_event === "PgSleep"
      );
      await kill(driver, pid);
      await committing;
      assert(session.lost.aborted);
      await session.release();
      await query(driver, `DROP TABLE ${notes}`);
      await query(driver, `DROP FUNCTION ${notes}_wait`);
    }),
);
