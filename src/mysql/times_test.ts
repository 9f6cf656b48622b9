import assert from "node:assert/strict";
import { bind, type Statement } from "../driver/statement.ts";
import { isDriverError } from "./server_for_test.ts";
import { Columns } from "./columns.ts";
import { mysqlDialect } from "./dialect.ts";
import {
  CLOCKS,
  GIVEN_CLOCK,
  ROW_LOCK,
  SECOND,
  tableTest,
  type TestTable,
  TIME_TYPES,
} from "./table_for_test.ts";
import { type Now, Times } from "./times.ts";

for (const type of TIME_TYPES) {
  const options = { ...ROW_LOCK, alter: [`ALTER TABLE {table} MODIFY retry_after ${type} NULL`] };

  tableTest(`a row is due at its time and not before: ${type}`, options, async (on) => {
    const due = type === "BIGINT" ? String(SECOND) : "'2026-01-31 10:00:01'";
    await on.sql(`INSERT INTO {table} (queue, payload, retry_after) VALUES ('q', '', ${due})`);
    const { find } = mysqlDialect.rowLock!(on.table, on.facts, GIVEN_CLOCK);
    const isFound = async (now: number) =>
      (await on.run(find.each[1]!, { now, limit: 1, priority: 0n })).rows.length === 1;
    for (const early of [1000, 501, 499, 1]) assert(!await isFound(SECOND - early), `${early}`);
    for (const late of [0, 1, 499, 501]) assert(await isFound(SECOND + late), `${late}`);
  });

  tableTest(`a delay is never cut short, and no delay is now: ${type}`, options, async (on) => {
    await on.sql("INSERT INTO {table} (queue, payload, retry_after) VALUES ('q', '', NULL)");
    const columns = new Columns(on.table, on.facts);
    const unit = Math.max(1, 10 ** (3 - columns.fraction("retryAfter")));
    for (const clock of CLOCKS) {
      const times = new Times(columns, clock);
      for (const delay of [0, 1, 400, 600, 999, 1000, 90_061_001, 10 * 365 * 86_400_000]) {
        // What the database's clock says is written beside, by the same statement.
        const { due, now } = await written(on, times.after("retryAfter", () => delay));
        const present = clock === "given" ? SECOND + 600 : now;
        if (delay === 0) assert(due <= present && present - due < unit, `${clock}, 0`);
        else assert(due >= present + delay && due < present + delay + unit, `${clock}, ${delay}`);
      }
      const { due, now } = await written(on, times.present("retryAfter"));
      const present = clock === "given" ? SECOND + 600 : now;
      assert(due <= present && present - due < unit, `${clock}, the present`);
    }
  });
}

for (const type of ["TIMESTAMP", "TIMESTAMP(3)"]) {
  tableTest(
    `a time after 2038 is refused, not stored wrongly: ${type}`,
    { ...ROW_LOCK, alter: [`ALTER TABLE {table} MODIFY retry_after ${type} NULL`] },
    async (on) => {
      await on.sql("INSERT INTO {table} (queue, payload) VALUES ('q', '')");
      for (const clock of CLOCKS) {
        const { delay } = mysqlDialect.rowLock!(on.table, on.facts, { ...GIVEN_CLOCK, clock });
        const values = { id: 1n, now: SECOND, delay: 20 * 365 * 86_400_000 };
        await assert.rejects(on.run(delay!, values), isDriverError("constraint", /1292/));
      }
      const { rows: [row] } = await on.sql("SELECT retry_after FROM {table}");
      assert.equal(row?.retry_after, null);
    },
  );
}

/** Writes a due time, and reads it and the statement's own time in milliseconds. */
async function written(
  { sql, facts }: TestTable,
  due: Statement<Now>,
): Promise<{ readonly due: number; readonly now: number }> {
  const isInteger = facts.columns.get("retry_after")!.startsWith("bigint");
  const micro = (time: string) => `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', ${time}) / 1000`;
  await sql(
    `UPDATE {table} SET retry_after = ${due.text}, payload = ${micro("UTC_TIMESTAMP(6)")}`,
    bind(due, { now: SECOND + 600 }),
  );
  const { rows: [row] } = await sql(
    `SELECT ${isInteger ? "retry_after" : micro("retry_after")} AS due, payload FROM {table}`,
  );
  return { due: Number(row!.due), now: Number(row!.payload) };
}
