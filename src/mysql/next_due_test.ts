import assert from "node:assert/strict";
import type { NextDue, QueueUse } from "../driver/dialect.ts";
import { mysqlDialect } from "./dialect.ts";
import {
  CLOCKS,
  GIVEN_CLOCK,
  LEASE,
  SECOND,
  type TableOptions,
  tableTest,
  type TestTable,
  TIME_TYPES,
} from "./table_for_test.ts";

for (const type of TIME_TYPES) {
  for (const priority of ["priority", undefined]) {
    const options: TableOptions = {
      ...LEASE,
      priority,
      alter: [
        `ALTER TABLE {table} MODIFY retry_after ${type} NULL, MODIFY locked_until ${type} NULL`,
      ],
    };
    const title = `${type}, ${priority ? "with" : "without"} priorities`;

    tableTest(`the next due time is exact to the millisecond: ${title}`, options, async (on) => {
      const time = type === "BIGINT" ? `${SECOND}` : "'2026-01-31 10:00:01'";
      for (const column of ["retry_after", "locked_until"]) {
        await on.sql("DELETE FROM {table}");
        await on.sql(`INSERT INTO {table} (queue, payload, ${column}) VALUES ('q', '', ${time})`);
        for (const early of [3_600_001, 1_000, 501, 500, 499, 1]) {
          const found = await ask(on, GIVEN_CLOCK, SECOND - early);
          assert.deepEqual(found, { dueIn: early, isWaiting: false }, `${column}, ${early}`);
        }
        for (const late of [0, 1, 499, 501]) {
          const found = await ask(on, GIVEN_CLOCK, SECOND + late);
          assert.deepEqual(found, { dueIn: undefined, isWaiting: true }, `${column}, ${late}`);
        }
      }
    });
  }
}

for (const priority of ["priority", undefined]) {
  tableTest(`a row without a due time is waiting, ${priority ? "with" : "without"} priorities`, {
    ...LEASE,
    priority,
    alter: ["ALTER TABLE {table} MODIFY retry_after DATETIME(3) NULL"],
  }, async (on) => {
    await on.sql("INSERT INTO {table} (queue, payload, retry_after) VALUES ('q', '', NULL)");
    for (const clock of CLOCKS) {
      const found = await ask(on, { ...GIVEN_CLOCK, clock }, SECOND);
      assert.deepEqual(found, { dueIn: undefined, isWaiting: true }, clock);
    }
  });
}

tableTest("microseconds are rounded up", {
  ...LEASE,
  alter: ["ALTER TABLE {table} MODIFY retry_after DATETIME(6) NOT NULL"],
}, async (on) => {
  await on.sql(
    "INSERT INTO {table} (queue, payload, retry_after) VALUES ('q', '', '2026-01-31 10:00:01.000001')",
  );
  assert.deepEqual(await ask(on, GIVEN_CLOCK, SECOND), { dueIn: 1, isWaiting: false });
  assert.deepEqual(await ask(on, GIVEN_CLOCK, SECOND + 1), { dueIn: undefined, isWaiting: true });
});

tableTest("the next due time is told without an index that serves", {
  ...LEASE,
  alter: ["ALTER TABLE {table} MODIFY id BIGINT NOT NULL", "DROP INDEX {table}_claim ON {table}"],
}, async (on) => {
  await on.sql(
    "INSERT INTO {table} (id, queue, payload, priority, retry_after) VALUES " +
      "(1, 'q', '', 1, '2026-01-31 10:00:03'), (2, 'q', '', 2, '2026-01-31 10:00:02'), " +
      "(3, 'q', '', 3, '2026-01-31 10:00:01')",
  );
  assert.deepEqual(await ask(on, GIVEN_CLOCK, SECOND), { dueIn: 1_000, isWaiting: true });
});

async function ask({ table, facts, run }: TestTable, use: QueueUse, now: number): Promise<NextDue> {
  const { statement, read } = mysqlDialect.nextDue(table, facts, use);
  const { rows } = await run(statement, { now });
  assert.equal(rows.length, 1);
  return read(rows[0]!);
}
