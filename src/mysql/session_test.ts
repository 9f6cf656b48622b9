import assert from "node:assert/strict";
import {
  connectionOf,
  firstRow,
  isDriverError,
  query,
  serverTest,
  withDriver,
  withTable,
} from "./server_for_test.ts";

serverTest(
  "a transaction is committed, or rolled back",
  (server) =>
    withDriver(
      server,
      {},
      (driver) =>
        withTable(driver, "id BIGINT PRIMARY KEY, note TEXT", async (notes) => {
          const session = await driver.session();
          await session.begin();
          const inserted = await session.query(`INSERT INTO ${notes} VALUES (?, ?)`, [1, "kept"]);
          assert.equal(inserted.changes, 1);
          await session.commit();
          await session.begin();
          await session.query(`UPDATE ${notes} SET note = ?`, ["lost"]);
          await session.rollback();
          await session.rollback();
          await session.begin();
          await session.query(`UPDATE ${notes} SET note = ?`, ["lost"]);
          await session.release();
          await session.release();
          assert.deepEqual(await query(driver, `SELECT * FROM ${notes}`), {
            rows: [{ id: 1n, note: "kept" }],
            changes: 0,
          });
        }),
    ),
);

serverTest(
  "rows are counted that were found, changed or not",
  (server) =>
    withDriver(
      server,
      {},
      (driver) =>
        withTable(driver, "id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT", async (table) => {
          await query(driver, `INSERT INTO ${table} (n) VALUES (1), (1)`);
          const update = `UPDATE ${table} SET n = ?`;
          assert.deepEqual(await query(driver, update, [1]), { rows: [], changes: 2 });
          assert.deepEqual(await query(driver, `DELETE FROM ${table}`), { rows: [], changes: 2 });
        }),
    ),
);

serverTest(
  "what cannot be, in or out of a transaction, is refused",
  (server) =>
    withDriver(server, {}, (driver) =>
      withTable(driver, "id BIGINT PRIMARY KEY", async (table) => {
        const session = await driver.session();
        await assert.rejects(session.commit(), isDriverError("other", /no transaction is open/));
        await session.begin();
        await assert.rejects(session.begin(), isDriverError("other", /has a transaction open/));
        await session.query("SAVEPOINT a");
        await session.query("RELEASE SAVEPOINT a");
        const alter = `ALTER TABLE ${table} ADD COLUMN n INT`;
        await assert.rejects(
          session.query(alter),
          isDriverError("other", /ended by this: run ALTER/),
        );
        const insert = session.query(`INSERT INTO ${table} (id) VALUES (1)`);
        await assert.rejects(insert, isDriverError("other", /nothing more was sent/));
        await assert.rejects(session.commit(), isDriverError("other", /nothing more was sent/));
        await session.rollback();
        await session.begin();
        await session.commit();
        await session.release();
        assert.deepEqual((await query(driver, `SELECT id FROM ${table}`)).rows, []);
      })),
);

serverTest(
  "a deadlock is a conflict, after which nothing is sent until the rollback",
  (server) =>
    withDriver(
      server,
      {},
      (driver) =>
        withTable(driver, "id BIGINT PRIMARY KEY, n INT", async (table) => {
          await query(driver, `INSERT INTO ${table} VALUES (1, 0), (2, 0), (3, 0)`);
          const update = `UPDATE ${table} SET n = n + 1 WHERE id = ?`;
          const sessions = [await driver.session(), await driver.session()];
          for (const [index, session] of sessions.entries()) {
            await session.begin();
            await session.query(update, [index + 1]);
          }
          // The statement behind the one that fails would be committed on its own.
          const outcomes = await Promise.allSettled(sessions.flatMap((session, index) => [
            session.query(update, [2 - index]).finally(() => undefined),
            session.query(update, [3]).then(() => session.commit()),
          ]));
          const [one, , other] = outcomes;
          assert.notEqual(one!.status, other!.status);
          const loser = one!.status === "rejected" ? 0 : 1;
          const [failed, refused] = outcomes.slice(2 * loser) as PromiseRejectedResult[];
          assert(isDriverError("conflict", /1213/)(failed!.reason));
          assert(isDriverError("conflict", /nothing more was sent/)(refused!.reason));
          assert.equal(driver.classify(failed!.reason), "conflict");
          const session = sessions[loser]!;
          assert(!session.lost.aborted);
          await session.rollback();
          await session.begin();
          await session.query(update, [1]);
          await session.commit();
          for (const each of sessions) await each.release();
          const { rows } = await query(driver, `SELECT n FROM ${table} ORDER BY id`);
          assert.deepEqual(rows.map(({ n }) => n), [2, 1, 1]);
        }),
    ),
);

serverTest(
  "many runs of a statement are one transaction",
  (server) =>
    withDriver(server, {}, (driver) =>
      withTable(driver, "id BIGINT PRIMARY KEY", async (table) => {
        const session = await driver.session();
        const insert = `INSERT INTO ${table} VALUES (?)`;
        const results = await session.queryEach(
          insert,
          Array.from({ length: 300 }, (_, id) => [id]),
        );
        assert.equal(results.reduce((sum, { changes }) => sum + changes, 0), 300);
        const twice = session.queryEach(insert, [[300], [300], [301]]);
        await assert.rejects(twice, isDriverError("constraint"));
        assert.deepEqual(await session.queryEach(insert, []), []);
        const { count } = await firstRow(session, `SELECT COUNT(*) AS count FROM ${table}`);
        assert.equal(count, 300n);
        await session.release();
      })),
);

serverTest(
  "two sessions share one connection in turn",
  (server) =>
    withDriver(server, { connections: 1 }, async (driver) => {
      const [one, other] = [await driver.session(), await driver.session()];
      await one.begin();
      const order: string[] = [];
      const begun = other.begin().then(() => order.push("begun"));
      const single = driver.session().then(async (third) => {
        await third.query("SELECT 1");
        order.push("single");
        await third.release();
      });
      await new Promise((resolve) => setTimeout(resolve, 50));
      assert.deepEqual(order, []);
      const connection = await connectionOf(one);
      await one.commit();
      await one.release();
      await begun;
      assert.deepEqual(order, ["begun"]);
      assert.equal(await connectionOf(other), connection);
      await other.release();
      await single;
    }),
);

serverTest("an idle transaction stays open by its heartbeat", async (server) => {
  const { mysqlDriver } = await import("./driver.ts");
  const { connect } = await import("./own_client.ts");
  const { readUrl } = await import("./address.ts");
  const driver = mysqlDriver({
    label: "for a test",
    connections: 1,
    connect: () => connect(readUrl(server)),
    statementTimeout: 5000,
    patience: 5000,
    heartbeat: 100,
  });
  await driver.open();
  const session = await driver.session();
  await session.query("SET wait_timeout = 1 /*M! , idle_transaction_timeout = 1 */");
  await session.begin();
  await new Promise((resolve) => setTimeout(resolve, 2500));
  assert(!session.lost.aborted);
  await session.commit();
  await session.release();
  await driver.close();
});
