import assert from "node:assert/strict";
import type { RowAt, RowLockStatements } from "../driver/dialect.ts";
import type { Statement } from "../driver/statement.ts";
import { mysqlDialect } from "./dialect.ts";
import { firstRow } from "./server_for_test.ts";
import { contentOf, DATABASE_CLOCK, GIVEN_CLOCK, ROW_LOCK, tableTest } from "./table_for_test.ts";

const NOW = Date.parse("2026-01-31T10:00:00.250Z");

/** What each write changes; all but the first count an attempt. */
const WRITES: Readonly<Record<string, object>> = {
  remove: { processed_at: "2026-01-31 10:00:00.250" },
  free: { attempt: 4 },
  delay: { attempt: 4, retry_after: "2026-01-31 10:00:05.250" },
};

tableTest("each write changes its row, and tells so", ROW_LOCK, async (on) => {
  const statements = mysqlDialect.rowLock!(on.table, on.facts, GIVEN_CLOCK);
  for (const [name, changed] of Object.entries(WRITES)) {
    await on.sql("TRUNCATE TABLE {table}");
    await on.sql("INSERT INTO {table} (queue, payload, attempt) VALUES ('q', '', 3), ('q', '', 3)");
    const [first, second] = (await on.sql("SELECT * FROM {table} ORDER BY id")).rows;
    const write = statements[name as "remove"] as Statement<RowAt>;
    const values = { now: NOW, delay: 5000 };
    assert.equal((await on.run(write, { ...values, id: 3n } as RowAt)).changes, 0, name);
    assert.equal((await on.run(write, { ...values, id: 1n } as RowAt)).changes, 1, name);
    assert.deepEqual((await on.sql("SELECT * FROM {table} ORDER BY id")).rows, [
      { ...first, ...changed },
      second,
    ]);
  }
});

tableTest(
  "a row is deleted where nothing marks it, and what has no column is left out",
  { form: "row lock" },
  async (on) => {
    const statements = mysqlDialect.rowLock!(on.table, on.facts, DATABASE_CLOCK);
    const { remove, free, delay, bury, guardKey, find } = statements;
    assert.deepEqual([free, delay, bury, guardKey, find.nextPriority], Array(5).fill(undefined));
    await on.sql("INSERT INTO {table} (payload) VALUES ('a'), ('b')");
    assert.equal((await on.run(remove, { id: 1n, now: NOW })).changes, 1);
    assert.deepEqual(await found(statements), [{
      id: 2n,
      attempt: undefined,
      content: contentOf("b"),
    }]);

    async function found({ find, read }: RowLockStatements) {
      const values = { now: NOW, limit: 10, priority: 0n };
      return (await on.run(find.each[0]!, values)).rows.map(read);
    }
  },
);

tableTest(
  "a counter is counted to the highest number of its column, and no further",
  { ...ROW_LOCK, alter: ["ALTER TABLE {table} MODIFY attempt TINYINT NULL"] },
  async (on) => {
    const { free } = mysqlDialect.rowLock!(on.table, on.facts, DATABASE_CLOCK);
    for (const [before, after] of [["NULL", 2], ["-5", 2], ["126", 127], ["127", 127]] as const) {
      await on.sql("TRUNCATE TABLE {table}");
      await on.sql(`INSERT INTO {table} (queue, payload, attempt) VALUES ('q', '', ${before})`);
      assert.equal((await on.run(free!, { id: 1n, now: NOW })).changes, 1, before);
      assert.equal((await firstRow(on.session, `SELECT attempt FROM ${on.name}`)).attempt, after);
    }
  },
);

tableTest("the guard of a FIFO queue is its own", { ...ROW_LOCK, fifo: true }, (on) => {
  const keyOf = (group: string) =>
    mysqlDialect.rowLock!(on.table, on.facts, { ...DATABASE_CLOCK, group }).guardKey;
  assert.equal(keyOf("a"), `${on.name}:a`);
  assert.notEqual(keyOf("a"), keyOf("b"));
  return Promise.resolve();
});
