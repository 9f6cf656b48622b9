import assert from "node:assert/strict";
import type {
  AdvisoryLockStatements,
  Burial,
  LeaseStatements,
  LeaseToken,
  LockedRowAt,
  QueueUse,
  RowAt,
  RowLockStatements,
  TableDescription,
} from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import { mysqlDialect } from "./dialect.ts";
import { connectionOf, firstRow } from "./server_for_test.ts";
import {
  ADVISORY_LOCK,
  GIVEN_CLOCK,
  LEASE,
  ROW_LOCK,
  tableTest,
  type TestTable,
  withOther,
} from "./table_for_test.ts";

const NOW = Date.parse("2026-01-31T10:00:00.250Z");
const EXPIRY = Date.parse("2026-01-31T10:00:31Z");
const TEXTS: Partial<TableDescription> = {
  headers: "headers",
  partitionKey: "part",
  uniqueKey: "unique_key",
  lastError: "last_error",
};

type At = LeaseToken & LockedRowAt;

/** The row as its holder knows it; each form compares what it has. */
async function held(on: TestTable): Promise<At> {
  const holder = BigInt(await connectionOf(on.session));
  const attempt = on.table.form === "lease" ? 2 : 1;
  return { id: 1n, now: NOW, attempt, expiry: EXPIRY, latestExpiry: EXPIRY, holder };
}

const FOREIGN: Readonly<Record<string, (at: At) => Partial<At>>> = {
  "no such row": () => ({ id: 99n }),
};
const FOREIGN_LEASE: typeof FOREIGN = {
  ...FOREIGN,
  "another attempt": () => ({ attempt: 1 }),
  "a lease that ends later than any of the holder's": () => ({ latestExpiry: EXPIRY - 1000 }),
  "a row of another queue": () => ({ id: 2n }),
};
const FOREIGN_LOCK: typeof FOREIGN = {
  ...FOREIGN,
  "another attempt": () => ({ attempt: 2 }),
  "another session": ({ holder }) => ({ holder: holder + 1n }),
  "a row of another queue": () => ({ id: 2n }),
};

const FORMS: Readonly<Record<string, readonly [Partial<TableDescription>, typeof FOREIGN]>> = {
  lease: [LEASE, FOREIGN_LEASE],
  "row lock": [ROW_LOCK, FOREIGN],
  "advisory lock": [ADVISORY_LOCK, FOREIGN_LOCK],
};

for (const [form, [roles, foreign]] of Object.entries(FORMS)) {
  tableTest(
    `a row that is buried in its own table begins anew there: ${form}`,
    { ...roles, ...TEXTS },
    async (on) => {
      const bury = buryOf(on, { ...GIVEN_CLOCK, deadLetter: { group: "dead" } })!;
      const at = await held(on);
      for (const [error, kept] of [[undefined, "before"], ["after", "after"]] as const) {
        await fill(on);
        const before = await rowsOf(on);
        for (const [reason, other] of Object.entries(foreign)) {
          assert.deepEqual(await run(on, bury, { ...at, error, ...other(at) }), [0], reason);
        }
        assert.deepEqual(await rowsOf(on), before);
        assert.deepEqual(await run(on, bury, { ...at, error }), [1]);
        const changed = {
          queue: "dead",
          attempt: 1,
          retry_after: "2026-01-31 10:00:00.250",
          unique_key: null,
          last_error: kept,
          ...(on.table.lockedUntil && { locked_until: "2026-01-31 10:00:01.000" }),
        };
        assert.deepEqual(await rowsOf(on), [{ ...before[0], ...changed }, before[1]]);
      }
    },
  );

  for (const processedAt of ["processed_at", undefined]) {
    tableTest(
      `a row that is buried in another table is ${
        processedAt === undefined ? "gone from" : "done in"
      } its own: ${form}`,
      { ...roles, ...TEXTS, processedAt, alter: ["ALTER TABLE {table} ADD note TEXT"] },
      (on) =>
        withOther(on, TARGET, async (table, facts) => {
          const deadLetter = { table, facts, group: "dead" };
          const bury = buryOf(on, { ...GIVEN_CLOCK, deadLetter })!;
          const at = await held(on);
          await fill(on);
          await on.sql("UPDATE {table} SET note = 'n' WHERE id = 1");
          const before = await rowsOf(on);
          for (const [reason, other] of Object.entries(foreign)) {
            assert.deepEqual(await run(on, bury, { ...at, newId: "x", ...other(at) }), [0], reason);
          }
          assert.deepEqual(await rowsOf(on), before);
          const there = async () => (await on.session.query(`SELECT * FROM ${table.table}`)).rows;
          assert.deepEqual(await there(), []);
          assert.deepEqual(await run(on, bury, { ...at, newId: "x", error: "after" }), [1, 1, 1]);
          const row = {
            key: "x",
            body: "p",
            headers: '{"a":"b"}',
            part: "a",
            dedup: "k",
            tries: 1,
            kind: "dead",
            why: "after",
            due: "2026-01-31 10:00:00.250",
            NOTE: "n",
          };
          assert.deepEqual(await there(), [row]);
          const done = { ...before[0], processed_at: "2026-01-31 10:00:00.250" };
          assert.deepEqual(
            await rowsOf(on),
            processedAt === undefined ? [before[1]] : [done, before[1]],
          );

          await fill(on);
          assert.deepEqual(
            await run(on, bury, { ...at, newId: "y" }),
            [1, 0, 1],
            "a row with the same unique key is there already",
          );
          assert.deepEqual(await there(), [row]);
        }),
    );
  }

  tableTest(`without a dead letter no row is buried: ${form}`, roles, (on) => {
    assert.equal(buryOf(on, GIVEN_CLOCK), undefined);
    return Promise.resolve();
  });
}

tableTest(
  "what the failure before it said goes along to another table, with ids that the database makes",
  { ...ROW_LOCK, ...TEXTS },
  (on) =>
    withOther(on, { ...ROW_LOCK, ...TEXTS, uniqueKey: undefined }, async (table, facts) => {
      const bury = buryOf(on, { ...GIVEN_CLOCK, deadLetter: { table, facts, group: "dead" } })!;
      await fill(on);
      const at = { ...await held(on), id: 2n };
      assert.deepEqual(await run(on, bury, at), [1, 1, 1]);
      const { id, queue, last_error, processed_at } = await firstRow(
        on.session,
        `SELECT * FROM ${table.table}`,
      );
      assert.deepEqual([id, queue, last_error, processed_at], [1n, "dead", "before", null]);
    }),
);

/** Its columns have other names than the roles have in the table that rows come from. */
const TARGET = {
  form: "row lock",
  id: { column: "key", generatedBy: "service" },
  payload: { column: "body", storage: "text" },
  headers: "headers",
  partitionKey: "part",
  uniqueKey: "dedup",
  attempt: "tries",
  group: "kind",
  lastError: "why",
  retryAfter: "due",
  alter: ["ALTER TABLE {table} ADD NOTE TEXT"],
} as const;

function buryOf({ table, facts }: TestTable, use: QueueUse): Burial<At> | undefined {
  const statements: Record<
    string,
    () => LeaseStatements | RowLockStatements | AdvisoryLockStatements
  > = {
    lease: () => mysqlDialect.lease(table, facts, use),
    "row lock": () => mysqlDialect.rowLock!(table, facts, use),
    "advisory lock": () => mysqlDialect.advisoryLock(table, facts, use),
  };
  return statements[table.form]!().bury as Burial<At> | undefined;
}

/** Runs the statements in order, until the first finds nothing; how many rows each found or wrote. */
async function run(
  on: TestTable,
  bury: Burial<At>,
  values: RowAt & At & { readonly error?: string; readonly newId?: string },
): Promise<readonly number[]> {
  const counts: number[] = [];
  await on.session.begin();
  for (const statement of bury) {
    const { rows, changes } = await on.run(statement, values);
    counts.push(Math.max(rows.length, changes));
    if (counts[0] === 0) break;
  }
  await on.session.commit();
  return counts;
}

async function fill({ table, sql }: TestTable): Promise<void> {
  await sql("TRUNCATE TABLE {table}");
  await sql(
    `INSERT INTO {table} (queue, payload, attempt, retry_after, headers, part, unique_key, last_error)
     VALUES ('q', 'p', 2, '2020-01-01', '{"a":"b"}', 'a', 'k', 'before'),
       ('other', 'p', 2, '2020-01-01', '{"a":"b"}', 'a', 'k', 'before')`,
  );
  if (table.lockedUntil !== undefined) {
    await sql("UPDATE {table} SET locked_until = '2026-01-31 10:00:31'");
  }
}

async function rowsOf({ sql }: TestTable): Promise<readonly SqlRow[]> {
  return (await sql("SELECT * FROM {table} ORDER BY id")).rows;
}
