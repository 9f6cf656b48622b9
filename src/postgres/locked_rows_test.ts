import assert from "node:assert/strict";
import type { QueueUse, TableDescription } from "../driver/dialect.ts";
import type { Session } from "../driver/driver.ts";
import { bind, type Statement } from "../driver/statement.ts";
import { postgresDialect } from "./dialect.ts";
import { query, serverTest, tableName, withDriver } from "./server_for_test.ts";

type Claim = Statement<{
  readonly now: number;
  readonly limit: number;
  readonly priority: bigint;
  readonly leaseSeconds: number;
}>;
type Options = Partial<TableDescription> & { readonly alter?: string };

const ROLES = {
  attempt: "attempt",
  group: "queue",
  priority: "priority",
  retryAfter: "due",
  processedAt: "done",
};
const LEASE: Options = { ...ROLES, form: "lease", lockedUntil: "locked_until" };
const ROW_LOCK: Options = { ...ROLES, form: "row lock" };
const NULLABLE = "ALTER COLUMN due DROP NOT NULL, ALTER COLUMN due DROP DEFAULT";

const SHAPES: Readonly<Record<string, Options>> = {
  "lease, all roles": LEASE,
  "lease, due times may be NULL": { ...LEASE, alter: NULLABLE },
  "lease, no priorities": { ...LEASE, priority: undefined },
  "lease, nothing else": { form: "lease", lockedUntil: "locked_until" },
  "row lock, all roles": ROW_LOCK,
  "row lock, due times may be NULL": { ...ROW_LOCK, alter: NULLABLE },
  "row lock, nothing else": { form: "row lock" },
};

for (const [shape, options] of Object.entries(SHAPES)) {
  tableTest(`a claim locks what it returns, and nothing else: ${shape}`, options, async (on) => {
    const claimable = await fill(on);
    for (const clock of ["database", "given"] as const) {
      // 250 ends in the middle of a range, and in the middle of a priority.
      for (const limit of [1, 3, 250]) {
        assert.equal((await on.claim(clock, limit)).length, Math.min(limit, claimable.length));
      }
      assert.deepEqual(await on.claim(clock, 2 * SPAN), claimable);
    }
  });
}

for (const [form, options] of Object.entries({ lease: LEASE, "row lock": ROW_LOCK })) {
  const fifo = { ...options, fifo: true };
  tableTest(`a FIFO claim locks the head or nothing: ${form}`, fifo, async (on) => {
    await on.sql("INSERT INTO {table} (queue, payload) VALUES ('q', ''), ('q', ''), ('q', '')");
    for (const clock of ["database", "given"] as const) {
      const claim = () => on.claim(clock, 10);
      assert.deepEqual(await claim(), ["1"]);
      await on.sql("UPDATE {table} SET due = now() + interval '1 hour' WHERE id = 1");
      assert.deepEqual(await claim(), [], "a head that is not due blocks the queue");
      await on.sql("UPDATE {table} SET due = '2020-01-01' WHERE id = 1");
      if (on.table.lockedUntil !== undefined) {
        for (const leased of [1, 3]) {
          const lease = (until: string) =>
            on.sql(`UPDATE {table} SET locked_until = ${until} WHERE id = ${leased}`);
          await lease("now() + interval '1 hour'");
          assert.deepEqual(await claim(), [], `row ${leased} is leased`);
          await lease("'2020-01-01'");
          assert.deepEqual(await claim(), ["1"], `the lease of row ${leased} has ended`);
          await lease("NULL");
        }
      }
      await on.sql("UPDATE {table} SET priority = -1 WHERE id = 3");
      assert.deepEqual(await claim(), ["3"]);
      await on.sql("UPDATE {table} SET priority = 0 WHERE id = 3");
      await on.sql("UPDATE {table} SET done = now() WHERE id = 1");
      assert.deepEqual(await claim(), ["2"]);
      await on.sql("UPDATE {table} SET done = NULL WHERE id = 1");
    }
  });

  tableTest(`a FIFO head that is locked blocks, and no one waits: ${form}`, fifo, async (on) => {
    await on.sql("INSERT INTO {table} (queue, payload) VALUES ('q', ''), ('q', '')");
    await on.other.begin();
    await on.other.query(`SELECT id FROM ${on.table.table} WHERE id = 1 FOR UPDATE`);
    await on.session.begin();
    await on.session.query("SET LOCAL lock_timeout TO '1s'");
    assert.deepEqual(await on.run("database", 10), []);
  });
}

interface Table {
  readonly table: TableDescription;
  readonly session: Session;
  readonly other: Session;
  sql(text: string): Promise<void>;
  /** Claims in the open transaction; the ids that came back. */
  run(clock: QueueUse["clock"], limit: number): Promise<readonly string[]>;
  /** Claims, compares with what another session sees locked, and takes it back; the ids in order. */
  claim(clock: QueueUse["clock"], limit: number): Promise<readonly string[]>;
}

function tableTest(name: string, options: Options, test: (on: Table) => Promise<void>): void {
  serverTest(name, (server) =>
    withDriver(server, {}, async (driver) => {
      const { alter, ...roles } = options;
      const table: TableDescription = {
        form: "lease",
        table: tableName(),
        id: { column: "id", generatedBy: "database" },
        payload: { column: "payload", storage: "text" },
        ...roles,
      };
      for (const text of postgresDialect.ddl(table)) await query(driver, text);
      const [session, other] = [await driver.session(), await driver.session()];
      try {
        if (alter !== undefined) await query(driver, `ALTER TABLE ${table.table} ${alter}`);
        const inspect = postgresDialect.inspect(table);
        const { rows } = await query(driver, inspect.text, bind(inspect, undefined));
        const facts = postgresDialect.facts(table, rows);
        assert.deepEqual(facts.problems, []);
        const run = async (clock: QueueUse["clock"], limit: number) => {
          const claim = claimOf(table, facts, { clock, group: "q" });
          const values = { now: Date.now(), limit, priority: 0n, leaseSeconds: 30 };
          const { rows } = await session.query(claim.text, bind(claim, values));
          return rows.map(({ id }) => String(id));
        };
        await test({
          table,
          session,
          other,
          sql: async (text) => void await query(driver, text.replaceAll("{table}", table.table)),
          run,
          claim: (clock, limit) => lockedBy(table.table, session, other, () => run(clock, limit)),
        });
      } finally {
        await session.release();
        await other.release();
        await query(driver, `DROP TABLE ${table.table}`);
      }
    }));
}

function claimOf(
  table: TableDescription,
  facts: ReturnType<typeof postgresDialect.facts>,
  use: QueueUse,
): Claim {
  if (table.form === "row lock") return postgresDialect.rowLock!(table, facts, use).find.each[0]!;
  const { claim } = postgresDialect.lease(table, facts, use);
  assert(claim.kind === "at once");
  return claim.claim;
}

async function lockedBy(
  name: string,
  session: Session,
  other: Session,
  run: () => Promise<readonly string[]>,
): Promise<readonly string[]> {
  await session.begin();
  await other.begin();
  try {
    const returned = byNumber(await run());
    const free = await other.query(`SELECT id FROM ${name} FOR UPDATE SKIP LOCKED`);
    const unlocked = new Set(free.rows.map(({ id }) => id));
    const all = await other.query(`SELECT id FROM ${name} ORDER BY id`);
    const locked = all.rows.filter(({ id }) => !unlocked.has(id!)).map(({ id }) => String(id));
    assert.deepEqual(locked, returned);
    return returned;
  } finally {
    await session.rollback();
    await other.rollback();
  }
}

const SPAN = 1000;

/** Writes rows of all kinds, mixed; the ids of those that may be claimed. */
async function fill({ table, sql, other }: Table): Promise<readonly string[]> {
  const kinds = Object.entries(KINDS)
    .filter(([role]) => table[role as keyof typeof KINDS] !== undefined);
  const columns = kinds.map(([role]) => table[role as keyof typeof KINDS]);
  const values = kinds.map(([, { value }]) => value);
  await sql(
    `INSERT INTO {table} (${["payload", ...columns].join(", ")}) ` +
      `SELECT ${["(n % 7)::text", ...values].join(", ")} FROM generate_series(1, ${SPAN}) AS n`,
  );
  const kept = kinds.map(([, { kept }]) => `'${kept}'`);
  const { rows } = await other.query(
    `SELECT id FROM ${table.table} WHERE payload NOT IN (${
      ["''", ...kept].join(", ")
    }) ORDER BY id`,
  );
  return rows.map(({ id }) => String(id));
}

/** What each role holds, and the kind of row that it keeps from being claimed. */
const KINDS = {
  processedAt: { value: "CASE n % 7 WHEN 0 THEN now() END", kept: "0" },
  lockedUntil: {
    value: "CASE n % 7 WHEN 1 THEN now() + interval '1 hour' WHEN 2 THEN '2020-01-01' END",
    kept: "1",
  },
  retryAfter: {
    value: "CASE n % 7 WHEN 3 THEN now() + interval '1 hour' ELSE '2020-01-01' END",
    kept: "3",
  },
  group: { value: "CASE n % 7 WHEN 4 THEN 'others' ELSE 'q' END", kept: "4" },
  priority: { value: "n % 2", kept: "" },
} as const;

function byNumber(ids: readonly string[]): readonly string[] {
  return ids.toSorted((a, b) => Number(a) - Number(b));
}
