import assert from "node:assert/strict";
import type { SearchPlan, SearchValues } from "../driver/dialect.ts";
import type { Statement } from "../driver/statement.ts";
import { mysqlDialect } from "./dialect.ts";
import {
  CLOCKS,
  DATABASE_CLOCK,
  LEASE,
  ROW_LOCK,
  type TableOptions,
  tableTest,
  type TestTable,
} from "./table_for_test.ts";

type Find = SearchPlan<Statement<SearchValues>>;

const SPAN = 1000;

const SHAPES: Readonly<Record<string, TableOptions>> = {
  "lease, all roles": LEASE,
  "lease, no attempts": { ...LEASE, attempt: undefined },
  "lease, no priorities, due times may be NULL": {
    ...LEASE,
    priority: undefined,
    alter: ["ALTER TABLE {table} MODIFY retry_after DATETIME(3) NULL"],
  },
  "lease, whole seconds": {
    ...LEASE,
    alter: [
      "ALTER TABLE {table} MODIFY retry_after TIMESTAMP NOT NULL, MODIFY locked_until DATETIME",
    ],
  },
  "lease, nothing else": { form: "lease", lockedUntil: "locked_until" },
  "lease, another index that seems to do": {
    ...LEASE,
    alter: ["CREATE INDEX other ON {table} (queue, priority, retry_after)"],
  },
  "lease, an index of the service's own for each part": {
    ...LEASE,
    alter: [
      "ALTER TABLE {table} DROP INDEX {table}_claim, " +
      "ADD INDEX own_free (processed_at, queue, priority, locked_until, retry_after), " +
      "ADD INDEX own_expired (processed_at, queue, locked_until)",
    ],
  },
  "row lock, all roles": ROW_LOCK,
  "row lock, groups only": { form: "row lock", group: "queue" },
  "row lock, nothing else": { form: "row lock" },
  "row lock, due times may be NULL": {
    ...ROW_LOCK,
    priority: undefined,
    alter: ["ALTER TABLE {table} MODIFY retry_after DATETIME(6) NULL"],
  },
};

for (const [shape, options] of Object.entries(SHAPES)) {
  tableTest(`a search locks what it returns, and nothing else: ${shape}`, options, async (on) => {
    const claimable = await fill(on);
    for (const clock of CLOCKS) {
      const find = findOf(on, { ...DATABASE_CLOCK, clock });
      await checkParts(on, find, 3);
      assert.deepEqual(await checkParts(on, find, SPAN * 2), claimable);
    }
  });
}

const FIFO: Readonly<Record<string, TableOptions>> = {
  "lease": { ...LEASE, fifo: true },
  "row lock": { ...ROW_LOCK, fifo: true },
  "lease, due times may be NULL, no priorities": {
    ...LEASE,
    fifo: true,
    priority: undefined,
    processedAt: undefined,
    alter: ["ALTER TABLE {table} MODIFY retry_after DATETIME(3) NULL"],
  },
};

for (const [shape, options] of Object.entries(FIFO)) {
  tableTest(`a FIFO search locks the head or nothing: ${shape}`, options, async (on) => {
    const { table } = on;
    await on.sql("INSERT INTO {table} (queue, payload) VALUES ('q', 'a'), ('q', 'b'), ('q', 'c')");
    for (const clock of CLOCKS) {
      const find = findOf(on, { ...DATABASE_CLOCK, clock });
      assert.deepEqual([find.first.length, find.each.length, find.nextPriority], [0, 1, undefined]);
      const returned = () => checkPart(on, find.each[0]!, 10, 0n);
      assert.deepEqual(await returned(), ["1"]);

      await set(on, "retry_after", 1, "UTC_TIMESTAMP() + INTERVAL 1 HOUR");
      assert.deepEqual(await returned(), [], "a head that is not due blocks the queue");
      await set(on, "retry_after", 1, "'2020-01-01'");
      if (table.lockedUntil !== undefined) {
        for (const leased of [1, 3]) {
          await set(on, "locked_until", leased, "UTC_TIMESTAMP() + INTERVAL 1 HOUR");
          assert.deepEqual(await returned(), [], `row ${leased} is leased`);
          await set(on, "locked_until", leased, "'2020-01-01'");
          assert.deepEqual(await returned(), ["1"], `the lease of row ${leased} has ended`);
          await set(on, "locked_until", leased, "NULL");
        }
      }
      if (table.priority !== undefined) {
        await set(on, "priority", 3, "-1");
        assert.deepEqual(await returned(), ["3"]);
        await set(on, "priority", 3, "0");
      }
      if (table.processedAt !== undefined) {
        await set(on, "processed_at", 1, "UTC_TIMESTAMP()");
        assert.deepEqual(await returned(), ["2"]);
        await set(on, "processed_at", 1, "NULL");
      }
    }
  });

  tableTest(
    `a FIFO head that is locked blocks, and no one waits: ${shape}`,
    options,
    async (on) => {
      await on.sql("INSERT INTO {table} (queue, payload) VALUES ('q', 'a'), ('q', 'b')");
      const find = findOf(on, DATABASE_CLOCK);
      await on.other.begin();
      await on.other.query(`SELECT id FROM ${on.name} WHERE id = 1 FOR UPDATE`);
      await on.session.begin();
      const { rows } = await on.run(find.each[0]!, { now: Date.now(), limit: 10, priority: 0n });
      assert.deepEqual(rows, []);
    },
  );
}

function findOf({ table, facts }: TestTable, use: typeof DATABASE_CLOCK): Find {
  if (table.form === "row lock") return mysqlDialect.rowLock!(table, facts, use).find;
  const { claim } = mysqlDialect.lease(table, facts, use);
  assert(claim.kind === "find, then take");
  return claim.find;
}

/** Writes rows of all kinds, mixed; the ids of those that may be claimed. */
async function fill({ table, sql }: TestTable): Promise<readonly string[]> {
  const values = Object.entries(VALUES)
    .flatMap(([role, value]) => table[role as keyof typeof VALUES] === undefined ? [] : [value]);
  const columns = Object.keys(VALUES)
    .flatMap((role) => table[role as keyof typeof VALUES] ?? []);
  await sql(
    `INSERT INTO {table} (${["payload", ...columns].join(", ")})
     WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${SPAN - 1})
     SELECT ${["n % 7", ...values].join(", ")} FROM n`,
  );
  const kept = Object.entries(NOT_CLAIMABLE)
    .flatMap(([role, kind]) => table[role as keyof typeof VALUES] === undefined ? [] : [kind]);
  const { rows } = await sql(
    `SELECT id FROM {table} WHERE payload NOT IN (${["''", ...kept].join(", ")}) ORDER BY id`,
  );
  return rows.map(({ id }) => String(id));
}

const VALUES = {
  processedAt: "IF(n % 7 = 0, UTC_TIMESTAMP(), NULL)",
  lockedUntil:
    "CASE n % 7 WHEN 1 THEN UTC_TIMESTAMP() + INTERVAL 1 HOUR WHEN 2 THEN '2020-01-01' END",
  retryAfter: "IF(n % 7 = 3, UTC_TIMESTAMP() + INTERVAL 1 HOUR, '2020-01-01')",
  group: "IF(n % 7 = 4, 'others', 'q')",
  priority: "n % 2",
} as const;

const NOT_CLAIMABLE = { processedAt: "0", lockedUntil: "1", retryAfter: "3", group: "4" } as const;

/** Asks each part for each priority; all ids that were returned. */
async function checkParts(on: TestTable, find: Find, limit: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const part of find.first) ids.push(...await checkPart(on, part, limit, 0n));
  let priority = find.nextPriority === undefined ? 0n : await nextPriority(on, find, -5n);
  while (priority !== undefined) {
    for (const part of find.each) ids.push(...await checkPart(on, part, limit, priority));
    if (find.nextPriority === undefined) break;
    priority = await nextPriority(on, find, priority + 1n);
  }
  return ids.toSorted((a, b) => Number(a) - Number(b));
}

async function nextPriority(
  { run }: TestTable,
  find: Find,
  atLeast: bigint,
): Promise<bigint | undefined> {
  const { rows: [row] } = await run(find.nextPriority!, { atLeast });
  return row?.priority == null ? undefined : BigInt(row.priority as number);
}

/** Asks one part, and looks from another session which rows are locked then; the ids it returned. */
async function checkPart(
  { name, run, session, other }: TestTable,
  part: Statement<SearchValues>,
  limit: number,
  priority: bigint,
): Promise<readonly string[]> {
  const all = (await session.query(`SELECT id FROM ${name}`)).rows.map(({ id }) => String(id));
  await session.begin();
  await other.begin();
  try {
    const { rows } = await run(part, { now: Date.now(), limit, priority });
    const unlocked = await other.query(
      `SELECT id FROM ${name} FORCE INDEX (PRIMARY) FOR UPDATE SKIP LOCKED`,
    );
    const free = new Set(unlocked.rows.map(({ id }) => String(id)));
    const returned = rows.map(({ id }) => String(id));
    assert(returned.length <= limit);
    assert.deepEqual(
      all.filter((id) => !free.has(id)).toSorted(),
      returned.toSorted(),
      part.text,
    );
    return returned;
  } finally {
    await session.rollback();
    await other.rollback();
  }
}

async function set(
  { sql }: TestTable,
  column: string,
  id: number,
  value: string,
): Promise<void> {
  await sql(`UPDATE {table} SET ${column} = ${value} WHERE id = ${id}`);
}
