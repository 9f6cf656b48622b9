import assert from "node:assert/strict";
import type { LeaseStatements, TableDescription } from "../driver/dialect.ts";
import type { Session } from "../driver/driver.ts";
import { bind, type Statement } from "../driver/statement.ts";
import { postgresDialect } from "./dialect.ts";
import { postgres } from "./mod.ts";

const url = Deno.env.get("HOLDFAST_TEST_POSTGRES");

const TABLE: TableDescription = {
  table: "claim_plan_jobs",
  form: "lease",
  id: { column: "id", generatedBy: "database" },
  payload: { column: "payload", storage: "text" },
  attempt: "attempt",
  lockedUntil: "locked_until",
};

Deno.test("Postgres: a claim of 100,000 rows, half of them leased, reads the indexes that ddl makes", async () => {
  if (url === undefined) {
    assert.notEqual(Deno.env.get("CI"), "true", "HOLDFAST_TEST_POSTGRES is not set");
    console.log("skipped: HOLDFAST_TEST_POSTGRES is not set");
    return;
  }
  const driver = postgres(url);
  await driver.open();
  const session = await driver.session();
  try {
    await makeTable(session);
    const statements = await statementsOf(session);
    for (const analyzed of [false, true]) {
      if (analyzed) await session.query(`ANALYZE ${TABLE.table}`);
      for (const limit of [1, 100]) await checkClaim(session, statements, limit);
    }
    await checkRenewal(session, statements);
  } finally {
    await session.query(`DROP TABLE IF EXISTS ${TABLE.table}`);
    await session.release();
    await driver.close();
  }
});

async function makeTable(session: Session): Promise<void> {
  await session.query(`DROP TABLE IF EXISTS ${TABLE.table}`);
  for (const text of postgresDialect.ddl(TABLE)) await session.query(text);
  await session.query(
    `INSERT INTO ${TABLE.table} (payload, locked_until)
     SELECT '{}', CASE WHEN n <= 50000 THEN now() + interval '1 hour' END
     FROM generate_series(1, 100000) AS n`,
  );
}

async function statementsOf(session: Session): Promise<LeaseStatements> {
  const inspect = postgresDialect.inspect(TABLE);
  const { rows } = await session.query(inspect.text, bind(inspect, undefined));
  return postgresDialect.lease(TABLE, postgresDialect.facts(TABLE, rows), "database");
}

async function checkClaim(
  session: Session,
  { claim }: LeaseStatements,
  limit: number,
): Promise<void> {
  assert.equal(claim.kind, "at once");
  const plan = await planOf(session, claim.claim, { now: 0, leaseSeconds: 30, limit });
  assert.match(plan, /using claim_plan_jobs_leased/i);
  assert.match(plan, /using claim_plan_jobs_free/i);
  assert.match(plan, /claim_plan_jobs_pkey/);
  assert.doesNotMatch(plan, /Seq Scan/);
}

async function checkRenewal(session: Session, { renew }: LeaseStatements): Promise<void> {
  const token = { attempt: 2, expiry: 0, latestExpiry: 0, until: 0 };
  const tokens = Array.from({ length: 500 }, (_, n) => ({ ...token, id: BigInt(n) }));
  const plan = await planOf(session, renew.many!, tokens);
  assert.match(plan, /using claim_plan_jobs_pkey/i);
  assert.doesNotMatch(plan, /Seq Scan/);
}

async function planOf<V>(session: Session, statement: Statement<V>, values: V): Promise<string> {
  const { rows } = await session.query(`EXPLAIN ${statement.text}`, bind(statement, values));
  return rows.map((row) => Object.values(row)[0]).join("\n");
}
