import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { TableDescription } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import { bind, type Statement } from "../driver/statement.ts";
import { advisoryLockStatements } from "./advisory_lock_statements.ts";
import type { SqliteFacts } from "./columns.ts";
import { ddl } from "./ddl.ts";
import { leaseStatements } from "./lease_statements.ts";
import { nextDue } from "./next_due.ts";
import { facts, inspect } from "./table_facts.ts";

const NOW = Date.UTC(2026, 0, 31, 10);
const ROLES: TableDescription = {
  table: "jobs",
  form: "lease",
  id: { column: "id", generatedBy: "database" },
  payload: { column: "payload", storage: "text" },
  attempt: "attempt",
  lockedUntil: "locked_until",
  group: "queue",
  priority: "priority",
  retryAfter: "due",
  processedAt: "done",
};
const USE = { clock: "given", group: "jobs" } as const;
const VALUES = { now: NOW, limit: 10, priority: 1n };

Deno.test("a lease claim with every role reads the indexes of ddl() in order", () => {
  using table = new Table(ROLES);
  const { find } = leaseStatements(ROLES, table.facts, USE).claim;
  for (const analyzed of [false, true]) {
    if (analyzed) table.database.exec("ANALYZE");
    table.assertPlan(find.first[0]!, VALUES, "jobs_leased");
    for (const part of find.each) table.assertPlan(part, VALUES, "jobs_free");
    table.assertPlan(find.nextPriority!, { atLeast: 1n }, "jobs_free");
  }
});

Deno.test("the head of a FIFO queue is found by the indexes of ddl()", () => {
  const description: TableDescription = { ...ROLES, fifo: true };
  using table = new Table(description);
  const [head] = leaseStatements(description, table.facts, USE).claim.find.each;
  for (const analyzed of [false, true]) {
    if (analyzed) table.database.exec("ANALYZE");
    const plan = table.plan(head!, VALUES);
    assert.match(plan, /USING (COVERING )?INDEX jobs_head/, plan);
    assert.match(plan, /USING (COVERING )?INDEX jobs_leased/, plan);
    assert.doesNotMatch(plan, /SCAN|TEMP B-TREE/, plan);
  }
});

Deno.test("pages of candidates follow one another by the index of ddl()", () => {
  const description: TableDescription = {
    ...ROLES,
    form: "advisory lock",
    lockedUntil: undefined,
    lockKey: ["jobs-", { column: "id" }],
  };
  using table = new Table(description);
  const { candidates, readCandidate } = advisoryLockStatements(description, table.facts, USE);
  const [{ first, next }] = candidates.each as [typeof candidates.each[number]];
  const page = table.run(first, VALUES).map(readCandidate);
  const after = page.at(-1)!;
  const following = table.run(next, { ...VALUES, after }).map(readCandidate);
  assert.equal(new Set([...page, ...following].map(({ key }) => key)).size, 20);
  assert.deepEqual(
    [...page, ...following],
    table.run(first, { ...VALUES, limit: 20 }).map(readCandidate),
  );
  for (const analyzed of [false, true]) {
    if (analyzed) table.database.exec("ANALYZE");
    table.assertPlan(first, VALUES, "jobs_free");
    table.assertPlan(next, { ...VALUES, after }, "jobs_free");
    table.assertPlan(candidates.nextPriority!, { atLeast: 1n }, "jobs_free");
  }
});

Deno.test("when the next row becomes due is read by the indexes of ddl()", () => {
  const leased = [
    "jobs_leased (queue=? AND locked_until<?)",
    "jobs_leased (queue=? AND locked_until>? AND locked_until<?)",
  ];
  const free = [
    "jobs_free (queue=? AND priority=? AND due<?)",
    "jobs_free (queue=? AND priority=? AND due>? AND due<?)",
    "jobs_free (queue=? AND priority>?)",
    "jobs_free (queue=?)", // the first priority
  ];
  const rowLock: TableDescription = { ...ROLES, form: "row lock", lockedUntil: undefined };
  for (const [description, indexes] of [[ROLES, [...free, ...leased]], [rowLock, free]] as const) {
    using table = new Table(description);
    const { statement } = nextDue(description, table.facts, USE);
    for (const analyzed of [false, true]) {
      if (analyzed) table.database.exec("ANALYZE");
      const plan = table.plan(statement, VALUES);
      const reads = plan.matchAll(/^(?:SEARCH|SCAN) t\b(?: USING (?:COVERING )?INDEX )?(.*)$/gm);
      assert.deepEqual([...new Set([...reads].map(([, read]) => read!))].toSorted(), indexes, plan);
      // Only of rows whose lease has ended.
      const sorts = plan.match(/USE TEMP B-TREE/g) ?? [];
      assert.equal(sorts.length, description === rowLock ? 0 : 1, plan);
    }
  }
});

Deno.test("the key of bytes, NULL and text is one that comes back as it was", () => {
  const description: TableDescription = {
    ...ROLES,
    form: "advisory lock",
    lockedUntil: undefined,
    lockKey: ["a-", { column: "account" }],
  };
  const database = new DatabaseSync(":memory:");
  for (const text of ddl(description)) {
    database.exec(text.replace(`"account" TEXT NOT NULL DEFAULT ''`, `"account"`));
  }
  database.exec(`INSERT INTO jobs (payload, queue, account)
    VALUES ('{}', 'jobs', x'00ff10'), ('{}', 'jobs', NULL), ('{}', 'jobs', 'é'), ('{}', 'jobs', 5)`);
  const run = <V>({ text, params }: Statement<V>, values: V): SqlRow[] =>
    database.prepare(text).all(...bind({ text, params }, values)) as SqlRow[];
  const known = facts(description, run(inspect(description), undefined));
  const { candidates, readCandidate, take } = advisoryLockStatements(description, known, USE);
  const found = run(candidates.each[0]!.first, { ...VALUES, priority: 0n }).map(readCandidate);
  assert.deepEqual(found.map(({ key }) => key), ["a-00FF10", "a-", "a-é", "a-5"]);
  for (const { id, key } of found) {
    const values = { id, key, now: NOW, holder: 1n, attempt: undefined };
    assert.equal(run(take[0]!, values).length, 1, key);
    assert.equal(run(take[0]!, { ...values, key: `${key}x` }).length, 0, key);
  }
  database.close();
});

/** A table of 100,000 rows, half of them leased, a quarter in the future. */
class Table implements Disposable {
  readonly database = new DatabaseSync(":memory:");
  readonly facts: SqliteFacts;

  constructor(description: TableDescription) {
    for (const text of ddl(description)) this.database.exec(text);
    const leased = description.lockedUntil === undefined ? "" : ", locked_until";
    const expiry = leased === "" ? "" : `, CASE WHEN n <= 50000 THEN ${NOW + 3_600_000} + n END`;
    this.database.exec(`
      WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100000)
      INSERT INTO jobs (payload, queue, priority, due${leased})
      SELECT '{}', 'jobs', n % 3, ${NOW} + CASE WHEN n % 4 = 1 THEN n ELSE -n END${expiry}
      FROM numbers
    `);
    this.facts = facts(description, this.run(inspect(description), undefined));
    assert.deepEqual([this.facts.problems, this.facts.warnings], [[], []]);
  }

  run<V>({ text, params }: Statement<V>, values: V): SqlRow[] {
    const statement = this.database.prepare(text);
    statement.setReadBigInts(true);
    return statement.all(...bind({ text, params }, values)) as SqlRow[];
  }

  plan<V>({ text, params }: Statement<V>, values: V): string {
    return this.run({ text: `EXPLAIN QUERY PLAN ${text}`, params }, values)
      .map(({ detail }) => detail).join("\n");
  }

  assertPlan<V>(statement: Statement<V>, values: V, index: string): void {
    const plan = this.plan(statement, values);
    assert.match(plan, new RegExp(`^SEARCH jobs USING (COVERING )?INDEX ${index} `), plan);
    assert.doesNotMatch(plan, /TEMP B-TREE/, plan);
  }

  [Symbol.dispose](): void {
    this.database.close();
  }
}
