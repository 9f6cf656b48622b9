import assert from "node:assert/strict";
import type { Driver } from "../driver/driver.ts";
import { begin, given, isAlive, isFree, isUnused, lockTest } from "./locks_for_test.ts";
import { connectionOf, firstRow, isDriverError, query, withTable } from "./server_for_test.ts";

lockTest(
  "a checkpoint commits, and keeps the connection and its locks",
  ({ driver, witness, lockKey }) =>
    withTable(witness, "id BIGINT PRIMARY KEY", async (notes) => {
      const key = lockKey();
      const session = await begin(driver);
      const holder = given(await session.tryLock(key));
      for (let id = 1; id <= 3; id++) {
        await session.query(`INSERT INTO ${notes} VALUES (?)`, [id]);
        assert.equal(await count(witness, notes), id - 1);
        await session.checkpoint!();
        assert.equal(await count(witness, notes), id);
        assert.equal(BigInt(await connectionOf(session)), holder);
        assert(!await isFree(witness, key));
        assert.equal(await session.tryLock(key), holder);
      }
      await session.query(`INSERT INTO ${notes} VALUES (4)`);
      await session.rollback();
      assert.equal(await count(witness, notes), 3);
      assert(await isUnused(witness, key));
      assert(!session.lost.aborted);
      await session.release();
    }),
);

lockTest(
  "the transaction after a checkpoint sees what others commit, and holds no row",
  ({ driver, witness }) =>
    withTable(witness, "id BIGINT PRIMARY KEY, n INT", async (notes) => {
      await query(witness, `INSERT INTO ${notes} VALUES (1, 0)`);
      const session = await begin(driver);
      await session.query(`UPDATE ${notes} SET n = 1`);
      await session.checkpoint!();
      assert.deepEqual((await session.query(`SELECT n FROM ${notes}`)).rows, [{ n: 1 }]);
      await query(witness, `UPDATE ${notes} SET n = 2`);
      assert.deepEqual((await session.query(`SELECT n FROM ${notes}`)).rows, [{ n: 2 }]);
      await session.release();
    }),
);

lockTest(
  "what comes behind a checkpoint is done in the next transaction, and a release waits for it",
  ({ driver, witness, lockKey }) =>
    withTable(witness, "id BIGINT PRIMARY KEY", async (notes) => {
      const [key, next] = [lockKey(), lockKey()];
      const session = await begin(driver);
      const holder = given(await session.tryLock(key));
      const inserted = session.query(`INSERT INTO ${notes} VALUES (1)`);
      const saved = session.checkpoint!();
      const behind = session.query(`INSERT INTO ${notes} VALUES (2)`);
      assert.equal(await session.tryLock(next), holder);
      await session.release();
      await saved;
      for (const each of [inserted, behind]) assert.equal((await each).changes, 1);
      assert.equal(await count(witness, notes), 1);
      for (const each of [key, next]) assert(await isUnused(witness, each));
      assert(await isAlive(witness, holder), "the connection is kept");
    }),
);

lockTest(
  "a transaction that has ended unseen keeps its locks until it is rolled back",
  ({ driver, witness, lockKey }) =>
    withTable(witness, "id BIGINT PRIMARY KEY", async (notes) => {
      const key = lockKey();
      const session = await begin(driver);
      given(await session.tryLock(key));
      await assert.rejects(
        session.query(`ALTER TABLE ${notes} ADD COLUMN n INT`),
        isDriverError("other", /ended by this: run ALTER/),
      );
      await assert.rejects(session.checkpoint!(), isDriverError("other", /nothing more was sent/));
      assert(!await isFree(witness, key));
      await session.rollback();
      assert(await isUnused(witness, key));
      await session.release();
    }),
);

lockTest("a checkpoint needs a transaction", async ({ driver }) => {
  const session = await driver.session();
  await assert.rejects(session.checkpoint!(), isDriverError("other", /no transaction is open/));
  await session.release();
});

async function count(witness: Driver, notes: string): Promise<number> {
  return Number((await firstRow(witness, `SELECT COUNT(*) AS count FROM ${notes}`)).count);
}
