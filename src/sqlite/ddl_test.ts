import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { TableDescription } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import { bind, type Statement } from "../driver/statement.ts";
import { ddl } from "./ddl.ts";
import { leaseStatements, type SqliteLeaseStatements } from "./lease_statements.ts";
import { facts, inspect } from "./table_facts.ts";

const NOW = Date.UTC(2026, 0, 31, 10);

function describe(options: Partial<TableDescription> = {}): TableDescription {
  return {
    table: "jobs",
    form: "lease",
    id: { column: "id", generatedBy: "database" },
    payload: { column: "payload", storage: "text" },
    attempt: "attempt",
    lockedUntil: "locked_until",
    ...options,
  };
}

Deno.test("a table with every role, and its two indexes", () => {
  assert.deepEqual(ddl(describe()), [
    `CREATE TABLE "jobs" (
  "id" INTEGER PRIMARY KEY AUTOINCREMENT,
  "payload" TEXT NOT NULL,
  "attempt" INTEGER NOT NULL DEFAULT 1,
  "locked_until" INTEGER
)`,
    `CREATE INDEX "jobs_free" ON "jobs" ("id") WHERE "locked_until" IS NULL`,
    `CREATE INDEX "jobs_leased" ON "jobs" ("locked_until", "id") WHERE "locked_until" IS NOT NULL`,
  ]);
});

Deno.test("a table without attempts, with bytes, in a schema", () => {
  const table = describe({
    table: "queues.jobs",
    attempt: undefined,
    payload: { column: "body", storage: "bytes" },
  });
  assert.deepEqual(ddl(table), [
    `CREATE TABLE "queues"."jobs" (
  "id" INTEGER PRIMARY KEY AUTOINCREMENT,
  "body" BLOB NOT NULL,
  "locked_until" INTEGER
)`,
    `CREATE INDEX "queues"."jobs_free" ON "jobs" ("id") WHERE "locked_until" IS NULL`,
    `CREATE INDEX "queues"."jobs_leased" ON "jobs" ("locked_until", "id") ` +
    `WHERE "locked_until" IS NOT NULL`,
  ]);
  using database = new DatabaseSync(":memory:");
  database.exec("ATTACH ':memory:' AS queues");
  for (const text of ddl(table)) database.exec(text);
  const made = database.prepare("SELECT name FROM queues.sqlite_schema ORDER BY name").all();
  assert.deepEqual(made.map(({ name }) => name), [
    "jobs",
    "jobs_free",
    "jobs_leased",
    "sqlite_sequence",
  ]);
});

Deno.test("a table whose ids the service makes keeps them as text", () => {
  const [create] = ddl(describe({ id: { column: "key", generatedBy: "service" } }));
  assert.match(create!, /^ {2}"key" TEXT NOT NULL PRIMARY KEY,$/m);
});

Deno.test("a table without leases has no index of them", () => {
  const statements = ddl(describe({ form: "row lock", lockedUntil: undefined }));
  assert.equal(statements.length, 1);
  assert.doesNotMatch(statements[0]!, /locked_until/);
});

const VARIANTS: Partial<TableDescription>[] = [
  {},
  { attempt: undefined },
  { id: { column: "id", generatedBy: "service" } },
  { payload: { column: "payload", storage: "bytes" } },
  { table: "main.jobs" },
  { table: 'odd "name"', payload: { column: 'pay"load', storage: "text" }, attempt: "order" },
];

Deno.test("what ddl() makes is what the checks ask for", () => {
  for (const variant of VARIANTS) {
    using database = new DatabaseSync(":memory:");
    const table = describe(variant);
    for (const text of ddl(table)) database.exec(text);
    const statement = inspect(table);
    const rows = database.prepare(statement.text).all(...bind(statement, undefined)) as SqlRow[];
    assert.deepEqual(facts(table, rows).problems, [], table.table);
  }
});

Deno.test("an id of a deleted row is not used again", () => {
  using database = new DatabaseSync(":memory:");
  for (const text of ddl(describe())) database.exec(text);
  const insert = database.prepare("INSERT INTO jobs (payload) VALUES ('') RETURNING id");
  assert.deepEqual([insert.get()!.id, insert.get()!.id], [1, 2]);
  database.exec("DELETE FROM jobs");
  assert.equal(insert.get()!.id, 3);
});

const ROWS = 100_000;
const LEASED = 50_000;

/** A table made by ddl(), with 50,000 leased rows at its head and as many free ones behind. */
function largeTable(
  { timeType = "INTEGER", ...variant }: { timeType?: string } & Partial<TableDescription>,
): { database: DatabaseSync; statements: SqliteLeaseStatements } {
  const table = describe(variant);
  const database = new DatabaseSync(":memory:");
  for (const text of ddl(table)) {
    database.exec(text.replace(`"locked_until" INTEGER`, `"locked_until" ${timeType}`));
  }
  const id = table.id.generatedBy === "service" ? "printf('job-%06d', n)" : "n";
  const end = NOW + 3_600_000;
  const expiry = timeType === "TEXT" ? `'${new Date(end).toISOString()}'` : `${end} + n`;
  database.exec(`
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${ROWS})
    INSERT INTO jobs (id, payload, locked_until)
    SELECT ${id}, '{"n":' || n || '}', CASE WHEN n <= ${LEASED} THEN ${expiry} END FROM numbers
  `);
  const columns = new Map([["locked_until", timeType]]);
  const known = { exists: true, columns, problems: [], warnings: [] };
  return { database, statements: leaseStatements(table, known, { clock: "given" }) };
}

function planOf<V>(database: DatabaseSync, statement: Statement<V>, values: V): string {
  return database.prepare(`EXPLAIN QUERY PLAN ${statement.text}`).all(...bind(statement, values))
    .map(({ detail }) => detail).join("\n");
}

for (
  const [name, variant] of [
    ["integer ids", {}],
    ["integer ids without attempts", { attempt: undefined }],
    ["text ids", { id: { column: "id", generatedBy: "service" } }],
  ] as [string, Partial<TableDescription>][]
) {
  Deno.test(`each part of a claim reads its index in order, with ${name}`, () => {
    const { database, statements } = largeTable(variant);
    using _database = database;
    const { first: [expired], each: [free] } = statements.claim.find;
    const values = { now: NOW, limit: 10, priority: 0n };
    for (const analysed of [false, true]) {
      if (analysed) database.exec("ANALYZE");
      const expiredPlan = planOf(database, expired!, values);
      assert.match(expiredPlan, /USING (COVERING )?INDEX jobs_leased \(locked_until<\?\)/);
      const freePlan = planOf(database, free!, values);
      assert.match(freePlan, /USING (COVERING )?INDEX jobs_free/);
      assert.doesNotMatch(freePlan, /TEMP B-TREE/);
      assert.doesNotMatch(expiredPlan, /TEMP B-TREE/);
    }
  });

  Deno.test(`a claim behind 50,000 leased rows finds the right ones, with ${name}`, () => {
    const { database, statements } = largeTable(variant);
    using _database = database;
    const idOf = (n: number) => variant.id === undefined ? n : `job-${String(n).padStart(6, "0")}`;
    const { first: [expired], each: [free] } = statements.claim.find;
    const ask = <V>(statement: Statement<V>, values: V) =>
      database.prepare(statement.text).all(...bind(statement, values)).map(({ id }) => id);
    assert.deepEqual(ask(expired!, { now: NOW, limit: 3, priority: 0n }), []);
    assert.deepEqual(
      ask(free!, { now: NOW, limit: 3, priority: 0n }),
      [50_001, 50_002, 50_003].map(idOf),
    );
    const later = { now: NOW + 3_600_000 + 2, limit: 3, priority: 0n };
    assert.deepEqual(ask(expired!, later), [1, 2].map(idOf));
  });
}

Deno.test("each part of a claim reads its index, with text times", () => {
  const { database, statements } = largeTable({ timeType: "TEXT" });
  using _database = database;
  const { first: [expired], each: [free] } = statements.claim.find;
  for (const analysed of [false, true]) {
    if (analysed) database.exec("ANALYZE");
    assert.match(
      planOf(database, expired!, { now: NOW, limit: 10, priority: 0n }),
      /USING (COVERING )?INDEX jobs_leased \(locked_until<\?\)/,
    );
    const freePlan = planOf(database, free!, { now: NOW, limit: 10, priority: 0n });
    assert.match(freePlan, /USING (COVERING )?INDEX jobs_free/);
    assert.doesNotMatch(freePlan, /TEMP B-TREE/);
  }
});

Deno.test("taking and settling find their rows by id", () => {
  const { database, statements } = largeTable({});
  using _database = database;
  const token = { id: 5n, attempt: 2, expiry: NOW, latestExpiry: NOW };
  const values = { ...token, now: NOW, until: NOW, leaseSeconds: 30, delay: 0, ids: [1n, 2n] };
  const { claim, renew, remove, free, delay, release } = statements;
  const writes = [renew, remove, free, delay, release].map(({ one }) => one);
  for (const write of [claim.take, ...writes]) {
    const plan = planOf(database, write as Statement<typeof values>, values);
    assert.match(plan, /SEARCH jobs USING INTEGER PRIMARY KEY \(rowid=\?\)/, write.text);
  }
});
