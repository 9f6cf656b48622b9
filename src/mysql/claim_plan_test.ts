import assert from "node:assert/strict";
import type {
  AdvisoryLockStatements,
  Candidate,
  LeaseStatements,
  QueueUse,
  SearchPlan,
  SearchValues,
} from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import { bind, type Statement } from "../driver/statement.ts";
import { mysqlDialect } from "./dialect.ts";
import {
  ADVISORY_LOCK,
  CLOCKS,
  DATABASE_CLOCK,
  LEASE,
  ROW_LOCK,
  type TableOptions,
  tableTest,
  type TestTable,
} from "./table_for_test.ts";

const VALUES: SearchValues = { now: Date.now(), limit: 100, priority: 1n };
const AFTER: Candidate = { id: 90_000n, key: "", due: "2020-01-01 00:00:00.000", held: false };
const NULLABLE = "ALTER TABLE {table} MODIFY retry_after DATETIME(3) NULL";
/** An index that the servers prefer at times, and that does not serve. */
const TEMPTING = "CREATE INDEX tempting ON {table} (queue, priority, retry_after)";

const SHAPES: Readonly<Record<string, TableOptions>> = {
  "lease": { form: "lease", attempt: "attempt", lockedUntil: "locked_until" },
  "lease, all roles": { ...LEASE, alter: [TEMPTING] },
  "lease, all roles, due times may be NULL": { ...LEASE, alter: [NULLABLE] },
  "lease, FIFO": { ...LEASE, fifo: true },
  "row lock": { form: "row lock", attempt: "attempt" },
  "row lock, all roles": ROW_LOCK,
  "row lock, FIFO": { ...ROW_LOCK, fifo: true, alter: [TEMPTING] },
  "advisory lock, all roles": ADVISORY_LOCK,
  "advisory lock, due times may be NULL": { ...ADVISORY_LOCK, alter: [NULLABLE] },
};

for (const [shape, options] of Object.entries(SHAPES)) {
  tableTest(
    `at 100,000 rows claims read the indexes that ddl makes: ${shape}`,
    options,
    async (on) => {
      await fill(on);
      for (const analyzed of [false, true]) {
        if (analyzed) await on.sql("ANALYZE TABLE {table}");
        for (const clock of CLOCKS) {
          await checkClaims(on, { ...DATABASE_CLOCK, clock });
          await checkNextDue(on, { ...DATABASE_CLOCK, clock }, analyzed);
        }
      }
    },
  );
}

async function checkClaims(on: TestTable, use: QueueUse): Promise<void> {
  const { table, facts } = on;
  switch (table.form) {
    case "lease": {
      const lease = mysqlDialect.lease(table, facts, use);
      assert(lease.claim.kind === "find, then take");
      await checkSearch(on, lease.claim.find);
      return await checkById(on, lease);
    }
    case "row lock":
      return await checkSearch(on, mysqlDialect.rowLock!(table, facts, use).find);
    case "advisory lock":
      return await checkCandidates(on, mysqlDialect.advisoryLock(table, facts, use));
  }
}

async function checkSearch(on: TestTable, find: SearchPlan<Statement<SearchValues>>) {
  const { table: { fifo, group, lockedUntil } } = on;
  for (const part of [...find.first, ...find.each]) {
    const plan = await planOf(on, part, VALUES);
    const wanted = fifo
      ? ["PRIMARY", "_head", ...(lockedUntil === undefined ? [] : ["_leased"])]
      : [group === undefined && lockedUntil === undefined ? "PRIMARY" : "_claim"];
    checkPlan(on, plan, wanted);
    await checkReads(on, part, VALUES);
  }
  await checkNextPriority(on, find);
}

async function checkCandidates(on: TestTable, { candidates }: AdvisoryLockStatements) {
  const values = { ...VALUES, after: AFTER };
  for (const { first, next } of candidates.each) {
    for (const page of [first, next]) {
      checkPlan(on, await planOf(on, page, values), ["_claim"]);
      await checkReads(on, page, values);
    }
  }
  await checkNextPriority(on, candidates);
}

/** Answered from the index alone, before any row is read. */
async function checkNextPriority(on: TestTable, { nextPriority }: SearchPlan<unknown>) {
  assert.equal(
    nextPriority === undefined,
    on.table.priority === undefined || on.table.fifo === true,
  );
  if (nextPriority === undefined) return;
  const [row] = await planOf(on, nextPriority, { atLeast: 1n });
  assert.equal(row?.Extra, "Select tables optimized away");
  await checkReads(on, nextPriority, { atLeast: 1n });
}

/**
 * Read by the indexes. How many priorities an index has, among which it is to be skipped, the server
 * has to know, and none has the due times of a FIFO queue.
 */
async function checkNextDue(on: TestTable, use: QueueUse, analyzed: boolean): Promise<void> {
  const { table, facts } = on;
  const { statement } = mysqlDialect.nextDue(table, facts, use);
  const plan = (await planOf(on, statement, VALUES)).filter(({ table }) => table === "t");
  const text = plan.map(({ type, key, Extra }) => `${type} ${key} ${Extra}`).join("\n");
  for (const { key } of plan) {
    // Without leases and due times the first of all rows answers.
    const hasIndex = table.group !== undefined || table.lockedUntil !== undefined;
    if (hasIndex) assert.match(String(key), /_(claim|head|leased)$/, text);
  }
  if (table.fifo) return;
  const hasPriorities = table.priority !== undefined && table.retryAfter !== undefined;
  if (hasPriorities && !analyzed) return;
  if (hasPriorities) assert.match(text, /Using index for group-by/);
  await checkReads(on, statement, VALUES);
}

async function checkById(on: TestTable, { claim, renew, remove }: LeaseStatements) {
  assert(claim.kind === "find, then take");
  const ids = Array.from({ length: 100 }, (_, n) => BigInt(n));
  checkPlan(on, await planOf(on, claim.take, { ids, now: 0, leaseSeconds: 30 }), ["PRIMARY"]);
  checkPlan(on, await planOf(on, claim.fetch!, { ids }), ["PRIMARY"]);
  const token = { attempt: 2, expiry: 0, latestExpiry: 0, until: 0, now: 0 };
  const tokens = ids.map((id) => ({ ...token, id }));
  checkPlan(on, await planOf(on, renew.many!, tokens), ["PRIMARY"]);
  checkPlan(on, await planOf(on, remove.many!, tokens), ["PRIMARY"]);
}

/** The table is read by these indexes, in ranges or by value, and is not sorted. */
function checkPlan({ name }: TestTable, plan: readonly SqlRow[], wanted: readonly string[]): void {
  const onTable = plan.filter(({ table }) => ["t", "h", "l"].includes(String(table)));
  assert.deepEqual(
    onTable.map(({ key }) => String(key).replace(name, "")).toSorted(),
    wanted.toSorted(),
    plan.map(({ table, type, key, Extra }) => `${table} ${type} ${key} ${Extra}`).join("\n"),
  );
  for (const { type, key, Extra } of onTable) {
    const inOrder = type === "index" && key === "PRIMARY";
    assert(inOrder || ["range", "ref", "eq_ref", "const"].includes(String(type)), String(type));
    assert.doesNotMatch(String(Extra), /filesort|temporary|join buffer/);
  }
}

/** No more rows are read than are wanted, and a few to find their way, here and in what is made of them. */
async function checkReads<V>(on: TestTable, statement: Statement<V>, values: V): Promise<void> {
  const { session } = on;
  await session.query("FLUSH STATUS");
  await session.query(statement.text, bind(statement, values));
  const { rows } = await session.query("SHOW SESSION STATUS LIKE 'Handler_read%'");
  const reads = rows.reduce((sum, { Value }) => sum + Number(Value), 0);
  assert(reads <= 3 * VALUES.limit + 20, `${reads} reads: ${statement.text}`);
}

async function planOf<V>({ session }: TestTable, statement: Statement<V>, values: V) {
  // MySQL 9 shows a tree unless told otherwise, and MariaDB does not know the word.
  const version = String((await session.query("SELECT VERSION() AS v")).rows[0]?.v);
  const format = version.includes("MariaDB") ? "" : "FORMAT = TRADITIONAL ";
  return (await session.query(`EXPLAIN ${format}${statement.text}`, bind(statement, values))).rows;
}

/** Rows of all kinds, the claimable ones behind all others. */
async function fill({ table, sql }: TestTable): Promise<void> {
  // MySQL plans no further than to a head that may not be claimed.
  const leased = table.fifo ? "'2020-01-01'" : "UTC_TIMESTAMP() + INTERVAL 1 HOUR";
  const kinds: Readonly<Record<string, readonly string[]>> = {
    [table.processedAt ?? ""]: ["UTC_TIMESTAMP()", "NULL", "NULL", "NULL"],
    [table.lockedUntil ?? ""]: ["NULL", leased, "NULL", "NULL"],
    [table.retryAfter ?? ""]: ["'2020-01-01'", "'2020-01-01'", "'2999-01-01'", "'2020-01-01'"],
    [table.group ?? ""]: ["'q'", "'q'", "'q'", "'q'"],
    [table.priority ?? ""]: ["0", "0", "0", "1"],
    [table.payload!.column]: ["''", "''", "''", "''"],
  };
  const written = Object.entries(kinds).filter(([column]) => column !== "");
  const columns = written.map(([column]) => column).join(", ");
  const rows = [0, 1, 2, 3].map((kind) => `(${written.map(([, values]) => values[kind]).join()})`);
  await sql(`INSERT INTO {table} (${columns}) VALUES ${rows.join(", ")}`);
  for (let count = rows.length; count < 100_000; count *= 2) {
    await sql(`INSERT INTO {table} (${columns}) SELECT ${columns} FROM {table}`);
  }
}
