import assert from "node:assert/strict";
import type { TableDescription } from "../driver/dialect.ts";
import type { Session } from "../driver/driver.ts";
import { bind, type Statement } from "../driver/statement.ts";
import { postgresDialect } from "./dialect.ts";
import { serverTest, withDriver } from "./server_for_test.ts";
import type { PostgresFacts } from "./table_facts.ts";

const TABLE = "claim_plan_jobs";
const PLAIN: TableDescription = {
  table: TABLE,
  form: "lease",
  id: { column: "id", generatedBy: "database" },
  payload: { column: "payload", storage: "text" },
  attempt: "attempt",
  lockedUntil: "locked_until",
};
const ROLES: TableDescription = {
  ...PLAIN,
  group: "queue",
  priority: "priority",
  retryAfter: "due",
  processedAt: "done",
};
const USE = { clock: "database", group: "jobs" } as const;
const VALUES = { now: Date.UTC(2026, 0, 31), leaseSeconds: 30, limit: 10, priority: 1n };

serverTest(
  "a lease claim of 100,000 rows reads the indexes that ddl makes",
  (server) =>
    withTable(server, PLAIN, async ({ plan, facts }) => {
      const { claim, renew } = postgresDialect.lease(PLAIN, facts, USE);
      assert(claim.kind === "at once");
      for (const limit of [1, 100]) {
        const text = await plan(claim.claim, { ...VALUES, limit });
        assert.match(text, /using claim_plan_jobs_leased/i);
        assert.match(text, /using claim_plan_jobs_free/i);
        assert.match(text, /claim_plan_jobs_pkey/);
        assertNoScan(text);
      }
      const token = { attempt: 2, expiry: 0, latestExpiry: 0, until: 0 };
      const tokens = Array.from({ length: 500 }, (_, n) => ({ ...token, id: BigInt(n) }));
      const text = await plan(renew.many!, tokens);
      assert.match(text, /using claim_plan_jobs_pkey/i);
      assertNoScan(text);
    }),
);

serverTest(
  "a lease claim with every role reads the indexes that ddl makes, and few rows",
  (server) =>
    withTable(server, ROLES, async ({ plan, facts }) => {
      const { claim } = postgresDialect.lease(ROLES, facts, USE);
      assert(claim.kind === "at once");
      const text = await plan(claim.claim, VALUES);
      assert.match(text, /using claim_plan_jobs_leased/i);
      assert.match(text, /using claim_plan_jobs_free/i);
      assertNoScan(text);
      assertFewRows(text);
    }),
);

serverTest("a row lock claim reads the index that ddl makes, and few rows", (server) => {
  const table: TableDescription = { ...ROLES, form: "row lock", lockedUntil: undefined };
  return withTable(server, table, async ({ plan, facts }) => {
    const [find] = postgresDialect.rowLock!(table, facts, USE).find.each;
    const text = await plan(find!, VALUES);
    assert.match(text, /using claim_plan_jobs_free/i);
    assertNoScan(text);
    assertFewRows(text);
  });
});

serverTest("the head of a FIFO queue is found by the indexes that ddl makes", async (server) => {
  for (const lockedUntil of ["locked_until", undefined]) {
    const form = lockedUntil === undefined ? "row lock" : "lease";
    const table: TableDescription = { ...ROLES, form, lockedUntil, fifo: true };
    await withTable(server, table, async ({ plan, facts }) => {
      const { claim } = postgresDialect.lease(
        { ...table, lockedUntil: "locked_until" },
        facts,
        USE,
      );
      assert(claim.kind === "at once");
      const head = lockedUntil === undefined
        ? postgresDialect.rowLock!(table, facts, USE).find.each[0]!
        : claim.claim;
      const text = await plan(head as Statement<typeof VALUES>, VALUES);
      assert.match(text, /using claim_plan_jobs_head/i);
      if (lockedUntil !== undefined) assert.match(text, /using claim_plan_jobs_leased/i);
      assertNoScan(text);
      assertFewRows(text);
    });
  }
});

serverTest(
  "pages of candidates are read by the index that ddl makes, one after another",
  (server) => {
    const table: TableDescription = {
      ...ROLES,
      form: "advisory lock",
      lockedUntil: undefined,
      lockKey: ["jobs-", { column: "id" }],
    };
    return withTable(server, table, async ({ session, plan, facts }) => {
      const { candidates, readCandidate } = postgresDialect.advisoryLock(table, facts, USE);
      const [{ first, next }] = candidates.each as [typeof candidates.each[number]];
      const { rows } = await session.query(first.text, bind(first, VALUES));
      const after = readCandidate(rows.at(-1)!);
      assert.equal(rows.length, VALUES.limit);
      const following = await session.query(next.text, bind(next, { ...VALUES, after }));
      assert.deepEqual(new Set([...rows, ...following.rows].map(({ id }) => id)).size, 20);
      const plans = [
        await plan(first, VALUES),
        await plan(next, { ...VALUES, after }),
        await plan(candidates.nextPriority!, { atLeast: 1n }),
      ];
      for (const text of plans) {
        assert.match(text, /using claim_plan_jobs_free/i);
        assertNoScan(text);
        assertFewRows(text);
      }
    });
  },
);

serverTest(
  "when the next row becomes due is read by the indexes that ddl makes, of few rows",
  async (server) => {
    const tables: readonly TableDescription[] = [
      PLAIN,
      ROLES,
      { ...ROLES, priority: undefined },
      { ...ROLES, form: "row lock", lockedUntil: undefined },
    ];
    for (const table of tables) {
      await withTable(server, table, async ({ plan, facts }) => {
        for (const clock of ["database", "given"] as const) {
          const text = await plan(
            postgresDialect.nextDue(table, facts, { ...USE, clock }).statement,
            { now: Date.now() },
          );
          assert.match(text, /using claim_plan_jobs_free/i);
          if (table.lockedUntil !== undefined) assert.match(text, /using claim_plan_jobs_leased/i);
          assertNoScan(text);
          assertFewRows(text);
        }
      });
    }
  },
);

interface Table {
  readonly session: Session;
  readonly facts: PostgresFacts;
  plan<V>(statement: Statement<V>, values: V): Promise<string>;
}

/** A table of 100,000 rows, half of them leased or in the future, at the head; tried twice. */
function withTable(
  server: string,
  description: TableDescription,
  test: (table: Table) => Promise<void>,
): Promise<void> {
  return withDriver(server, {}, async (driver) => {
    const session = await driver.session();
    await session.query(`CREATE SCHEMA IF NOT EXISTS claim_plan`);
    await session.begin();
    try {
      await session.query("SET LOCAL search_path TO claim_plan");
      await session.query(`DROP TABLE IF EXISTS ${TABLE}`);
      for (const text of postgresDialect.ddl(description)) await session.query(text);
      await session.query(fill(description));
      const inspect = postgresDialect.inspect(description);
      const { rows } = await session.query(inspect.text, bind(inspect, undefined));
      const facts = postgresDialect.facts(description, rows);
      assert.deepEqual([facts.problems, facts.warnings], [[], []]);
      for (const analyzed of [false, true]) {
        if (analyzed) await session.query(`ANALYZE ${TABLE}`);
        await test({
          session,
          facts,
          plan: (statement, values) => planOf(session, statement, values),
        });
      }
    } finally {
      await session.release();
    }
  });
}

function fill({ group, lockedUntil, priority }: TableDescription): string {
  const columns = ["payload"];
  const values = ["'{}'"];
  if (group !== undefined) {
    columns.push("queue", "due");
    values.push(
      "'jobs'",
      "now() + CASE WHEN n % 4 = 1 THEN interval '1 hour' ELSE '-1 s' END",
    );
  }
  if (priority !== undefined) {
    columns.push("priority");
    values.push("n % 3");
  }
  if (lockedUntil !== undefined) {
    columns.push("locked_until");
    values.push("CASE WHEN n <= 50000 THEN now() + interval '1 hour' END");
  }
  return `INSERT INTO ${TABLE} (${columns.join(", ")}) ` +
    `SELECT ${values.join(", ")} FROM generate_series(1, 100000) AS n`;
}

async function planOf<V>(session: Session, statement: Statement<V>, values: V): Promise<string> {
  await session.query("SAVEPOINT plan");
  const { rows } = await session.query(
    `EXPLAIN (ANALYZE, TIMING OFF) ${statement.text}`,
    bind(statement, values),
  );
  await session.query("ROLLBACK TO SAVEPOINT plan");
  return rows.map((row) => Object.values(row)[0]).join("\n");
}

function assertNoScan(plan: string): void {
  assert.doesNotMatch(plan, /Seq Scan on claim_plan_jobs/, plan);
}

/** No node of the plan has returned or rejected more than a few hundred rows. */
function assertFewRows(plan: string): void {
  const counts = [...plan.matchAll(/actual rows=(\d+)|Removed by Filter: (\d+)/g)]
    .map(([, rows, removed]) => Number(rows ?? removed));
  assert(counts.length > 0 && Math.max(...counts) <= 500, plan);
}
