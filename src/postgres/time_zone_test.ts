import assert from "node:assert/strict";
import type { TableDescription } from "../driver/dialect.ts";
import type { Session } from "../driver/driver.ts";
import { bind, type Statement } from "../driver/statement.ts";
import { postgresDialect } from "./dialect.ts";
import { firstRow, serverTest, withDriver } from "./server_for_test.ts";

const TABLE: TableDescription = {
  table: "zoned_jobs",
  form: "lease",
  id: { column: "id", generatedBy: "database" },
  payload: { column: "payload", storage: "text" },
  attempt: "attempt",
  lockedUntil: "locked_until",
  retryAfter: "due",
};
const NOON = Date.UTC(2026, 0, 31, 12, 0, 0, 123);

for (const zone of ["Pacific/Pago_Pago", "Pacific/Kiritimati"]) { // UTC-11, UTC+14
  for (const type of ["timestamptz", "bigint"]) {
    serverTest(
      `times as ${type} are right in the zone ${zone}, by either clock`,
      (server) =>
        withDriver(server, {}, async (driver) => {
          const session = await driver.session();
          await session.begin();
          try {
            await makeTable(session, zone, type);
            await checkGivenClock(session, type);
            await checkDatabaseClock(session, type);
          } finally {
            await session.release();
          }
        }),
    );
  }
}

/** In a temporary schema of its own, gone with the transaction. */
async function makeTable(session: Session, zone: string, type: string): Promise<void> {
  await session.query(`SET LOCAL TIME ZONE '${zone}'`);
  await session.query("SET LOCAL search_path TO pg_temp");
  for (const text of postgresDialect.ddl(TABLE)) {
    const typed = type === "bigint"
      ? text.replaceAll("timestamptz NOT NULL DEFAULT now()", "bigint NOT NULL DEFAULT 0")
        .replaceAll("timestamptz", "bigint")
      : text;
    await session.query(typed);
  }
}

async function checkGivenClock(session: Session, type: string): Promise<void> {
  await publish(session, "given", { now: NOON, delay: 1_500, at: undefined });
  const claim = (now: number) => claimOne(session, "given", now);
  assert.equal(await claim(NOON + 1_499), undefined);
  const claimed = await claim(NOON + 1_500);
  // The end of the second, a second, and the lease of 30.
  assert.equal(claimed?.expiry, Date.UTC(2026, 0, 31, 12, 0, 32));
  assert.equal(await milliseconds(session, type, "due"), NOON + 1_500);
  assert.equal(await milliseconds(session, type, "locked_until"), claimed.expiry);
  await session.query(`DELETE FROM ${TABLE.table}`);
}

/** The statement's own time, which stands still for no transaction. */
async function checkDatabaseClock(session: Session, type: string): Promise<void> {
  await publish(session, "database", { now: 0, delay: 0, at: undefined });
  const { now } = await firstRow(
    session,
    "SELECT (extract(epoch FROM statement_timestamp()) * 1000)::float8::text AS now",
  );
  const due = await milliseconds(session, type, "due");
  assert(Math.abs(due - Number(now)) < 60_000, `due ${due} at ${now}`);
  const claimed = await claimOne(session, "database", 0);
  assert(claimed !== undefined);
  assert(claimed.expiry - due > 30_000 && claimed.expiry - due < 95_000);
  assert(Math.abs(claimed.now! - Number(now)) < 60_000);
}

async function publish(
  session: Session,
  clock: "given" | "database",
  time: { readonly now: number; readonly delay: number; readonly at: number | undefined },
): Promise<void> {
  const facts = await factsOf(session);
  const { insert } = postgresDialect.publish(TABLE, facts, { clock, columns: [] });
  await run(session, insert, {
    id: undefined,
    payload: "{}",
    group: "",
    headers: null,
    key: null,
    uniqueKey: null,
    priority: 0n,
    columns: {},
    ...time,
  });
}

async function claimOne(session: Session, clock: "given" | "database", now: number) {
  const { claim, read } = postgresDialect.lease(TABLE, await factsOf(session), { clock });
  assert(claim.kind === "at once");
  const [row] = await run(session, claim.claim, { now, leaseSeconds: 30, limit: 1 });
  return row === undefined ? undefined : read(row);
}

async function factsOf(session: Session) {
  const inspect = postgresDialect.inspect(TABLE);
  const facts = postgresDialect.facts(TABLE, await run(session, inspect, undefined));
  assert.deepEqual(facts.problems, []);
  return facts;
}

async function run<V>(session: Session, statement: Statement<V>, values: V) {
  return (await session.query(statement.text, bind(statement, values))).rows;
}

async function milliseconds(session: Session, type: string, column: string): Promise<number> {
  const value = type === "bigint" ? column : `extract(epoch FROM ${column}) * 1000`;
  const { time } = await firstRow(
    session,
    `SELECT round(${value})::text AS time FROM ${TABLE.table}`,
  );
  return Number(time);
}
