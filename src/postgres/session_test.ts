import assert from "node:assert/strict";
import type { DriverError } from "../errors.ts";
import {
  firstRow,
  isDriverError,
  pidOf,
  query,
  serverTest,
  tableName,
  withDriver,
} from "./server_for_test.ts";

serverTest(
  "a transaction is committed, or rolled back",
  (server) =>
    withDriver(server, {}, async (driver) => {
      const notes = tableName();
      await query(driver, `CREATE TABLE ${notes} (id int8 PRIMARY KEY, note text)`);
      const session = await driver.session();
      await session.begin();
      const inserted = await session.query(`INSERT INTO ${notes} VALUES ($1, $2)`, [1, "kept"]);
      assert.deepEqual(inserted, { rows: [], changes: 1 });
      await session.commit();
      await session.begin();
      await session.query(`UPDATE ${notes} SET note = $1`, ["lost"]);
      await session.rollback();
      await session.rollback();
      await session.begin();
      const returned = await session.query(`UPDATE ${notes} SET note = $1 RETURNING id`, ["lost"]);
      assert.deepEqual(returned, { rows: [{ id: 1n }], changes: 0 });
      await session.release();
      await session.release();
      assert.deepEqual(await query(driver, `SELECT * FROM ${notes}`), {
        rows: [{ id: 1n, note: "kept" }],
        changes: 0,
      });
      await query(driver, `DROP TABLE ${notes}`);
    }),
);

serverTest(
  "what cannot be, in or out of a transaction, is refused",
  (server) =>
    withDriver(server, {}, async (driver) => {
      const session = await driver.session();
      await assert.rejects(session.commit(), isDriverError("other", /no transaction is open/));
      await session.begin();
      await assert.rejects(session.begin(), isDriverError("other", /has a transaction open/));
      for (const text of ["COMMIT", " rollback", "END", "ABORT WORK", "PREPARE TRANSACTION 'a'"]) {
        await assert.rejects(session.query(text), isDriverError("other", /would end unseen/), text);
      }
      await session.query("SAVEPOINT a");
      await session.query("ROLLBACK TO a");
      await session.query("ROLLBACK WORK TO SAVEPOINT a");
      await session.commit();
    }),
);

serverTest("transactions are READ COMMITTED whatever the default", (server) =>
  withDriver(
    `${server}?default_transaction_isolation=serializable`,
    {},
    async (driver) => {
      const session = await driver.session();
      const show = "SHOW transaction_isolation";
      assert.deepEqual(await firstRow(session, show), { transaction_isolation: "serializable" });
      await session.begin();
      assert.deepEqual(await firstRow(session, show), { transaction_isolation: "read committed" });
      await session.release();
    },
  ));

serverTest(
  "committing a transaction in which a statement failed is an error",
  (server) =>
    withDriver(server, { connections: 1 }, async (driver) => {
      const session = await driver.session();
      await session.begin();
      const pid = await pidOf(session);
      await assert.rejects(
        session.query("SELECT 1 / 0"),
        isDriverError("other", /division by zero/),
      );
      await assert.rejects(session.query("SELECT 1"), isDriverError("other", /25P02/));
      await assert.rejects(session.commit(), (error: DriverError) => {
        isDriverError("other", /^Cannot commit: a statement had failed/)(error);
        return /division by zero/.test(String(error.cause));
      });
      assert(!session.lost.aborted);
      await session.begin();
      assert.equal(await pidOf(session), pid);
      await session.commit();
      await session.release();
    }),
);

serverTest(
  "a statement in flight at commit that fails is an error of the commit",
  (server) =>
    withDriver(server, {}, async (driver) => {
      const session = await driver.session();
      await session.begin();
      const failing = assert.rejects(session.query("SELECT 1 / $1::int", [0]));
      await assert.rejects(session.commit(), isDriverError("other", /a statement had failed/));
      await failing;
    }),
);

serverTest(
  "after rolling back to a savepoint the rest is committed",
  (server) =>
    withDriver(server, {}, async (driver) => {
      const notes = tableName();
      await query(driver, `CREATE TABLE ${notes} (id int8 PRIMARY KEY)`);
      const session = await driver.session();
      await session.begin();
      const insert = `INSERT INTO ${notes} VALUES ($1)`;
      await session.query(insert, [1]);
      await session.query("SAVEPOINT a");
      await assert.rejects(session.query(insert, [1]), isDriverError("constraint", /23505/));
      await session.query("ROLLBACK TO SAVEPOINT a");
      await session.query(insert, [2]);
      await session.commit();
      assert.deepEqual(await query(driver, `SELECT id FROM ${notes} ORDER BY id`), {
        rows: [{ id: 1n }, { id: 2n }],
        changes: 0,
      });
      await query(driver, `DROP TABLE ${notes}`);
    }),
);

serverTest(
  "a COMMIT that the server refuses leaves the connection to the next",
  (server) =>
    withDriver(server, { connections: 1 }, async (driver) => {
      const notes = tableName();
      const unique = "UNIQUE DEFERRABLE INITIALLY DEFERRED";
      await query(driver, `CREATE TABLE ${notes} (id int8 ${unique}, note text)`);
      const [refused, next] = [await driver.session(), await driver.session()];
      const insert = `INSERT INTO ${notes} VALUES (1, $1)`;
      await refused.begin();
      await refused.queryEach(insert, [["one"], ["two"]]);
      const begun = next.begin();
      await assert.rejects(refused.commit(), isDriverError("constraint", /Cannot commit.*23505/));
      await begun;
      await next.query(insert, ["three"]);
      await refused.release();
      await new Promise((resolve) => setTimeout(resolve, 50));
      await next.query(insert, ["four"]);
      await next.rollback();
      const { rows } = await query(driver, `SELECT note FROM ${notes}`);
      assert.deepEqual(rows, []);
      await query(driver, `DROP TABLE ${notes}`);
    }),
);

serverTest(
  "many runs of a statement are one transaction",
  (server) =>
    withDriver(server, {}, async (driver) => {
      const notes = tableName();
      await query(driver, `CREATE TABLE ${notes} (id int8 PRIMARY KEY)`);
      const session = await driver.session();
      const insert = `INSERT INTO ${notes} VALUES ($1)`;
      const results = await session.queryEach(insert, Array.from({ length: 300 }, (_, id) => [id]));
      assert.equal(results.reduce((sum, { changes }) => sum + changes, 0), 300);
      const twice = session.queryEach(insert, [[300], [300], [301]]);
      await assert.rejects(twice, isDriverError("constraint"));
      assert.deepEqual(await session.queryEach(insert, []), []);
      const { count } = await firstRow(session, `SELECT count(*) FROM ${notes}`);
      assert.equal(count, 300n);
      await session.release();
      await query(driver, `DROP TABLE ${notes}`);
    }),
);

serverTest(
  "two sessions share one connection in turn",
  (server) =>
    withDriver(server, { connections: 1 }, async (driver) => {
      const [one, other] = [await driver.session(), await driver.session()];
      await one.begin();
      const order: string[] = [];
      const begun = other.begin().then(() => order.push("begun"));
      const single = driver.session()
        .then((third) => third.query("SELECT 1"))
        .then(() => order.push("single"));
      await new Promise((resolve) => setTimeout(resolve, 50));
      assert.deepEqual(order, []);
      await one.commit();
      await begun;
      assert.deepEqual(order, ["begun"]);
      await other.release();
      await single;
      await one.release();
    }),
);
