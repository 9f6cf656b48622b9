import type {
  Clock,
  GuardedStatement,
  GuardedWrite,
  LeaseStatements,
  LeaseToken,
  MessageId,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import { type LeaseWrite, leaseWrites } from "../driver/lease_writes.ts";
import type { Statement } from "../driver/statement.ts";
import { Columns } from "./columns.ts";
import { leaseClaim } from "./lease_claim.ts";
import { Parameters } from "./parameters.ts";

/** The lease form's statements for one table. */
export function leaseStatements(
  table: TableDescription,
  facts: TableFacts,
  clock: Clock,
): LeaseStatements {
  const columns = new Columns(table, facts);
  return {
    claim: leaseClaim(columns, clock),
    ...leaseWrites(columns.attempt !== undefined, (write) => guarded(columns, write)),
    look: look(columns),
    read: (row) => ({
      id: columns.readId(row),
      attempt: columns.attempt === undefined ? undefined : Number(row.attempt),
      expiry: Number(row.expiry),
      now: row.now === undefined ? undefined : Number(row.now),
      payload: row.payload ?? null,
    }),
    readId: (row) => columns.readId(row),
  };
}

function look(columns: Columns): LeaseStatements["look"] {
  const parameters = new Parameters<{ readonly id: MessageId }>();
  const id = columns.cast("id", parameters.add(({ id }) => String(id)));
  return parameters.statement(
    `SELECT ${columns.id}::text AS id FROM ${columns.table} WHERE ${columns.id} = ${id}`,
  );
}

/** The write under guard: for one row by its own parameters, for many by rows of a JSON text. */
function guarded<Extra>(columns: Columns, write: LeaseWrite<Extra>): GuardedWrite<Extra> {
  return { one: writeOne(columns, write), many: writeMany(columns, write) };
}

function writeOne<Extra>(columns: Columns, write: LeaseWrite<Extra>): GuardedStatement<Extra> {
  const parameters = new Parameters<LeaseToken & Extra>();
  const time = (of: (values: LeaseToken & Extra) => number): string =>
    columns.cast("lockedUntil", parameters.add((values) => columns.encodeTime(of(values))));
  const until = write !== "delete" && write.until !== undefined ? time(write.until) : "NULL";
  const held: Held = {
    id: columns.cast("id", parameters.add(({ id }) => String(id))),
    expiry: columns.attempt === undefined ? time(({ expiry }) => expiry) : "",
    attempt: columns.attempt === undefined
      ? ""
      : columns.cast("attempt", parameters.add(columns.encodeAttempt)),
    latest: time(({ latestExpiry }) => latestExpiry),
  };
  return parameters.statement(
    `${verb(columns, write, until)} WHERE ${guard(columns, held)} ${returning(columns)}`,
  );
}

function writeMany<Extra>(
  columns: Columns,
  write: LeaseWrite<Extra>,
): Statement<readonly (LeaseToken & Extra)[]> {
  const parameters = new Parameters<readonly (LeaseToken & Extra)[]>();
  const rows = parameters.add((tokens) => JSON.stringify(tokens.map(encode)));
  const time = columns.type("lockedUntil");
  const join = write === "delete" ? "USING" : "FROM";
  return parameters.statement(
    `${verb(columns, write, "held.until")} ${join} json_to_recordset(${rows}::text::json) ` +
      `AS held(id ${columns.type("id")}, attempt ${columns.type("attempt")}, ` +
      `expiry ${time}, latest ${time}, until ${time}) ` +
      `WHERE ${guard(columns, HELD)} ${returning(columns)}`,
  );

  function encode(token: LeaseToken & Extra): Readonly<Record<string, string | null>> {
    const until = write === "delete" ? undefined : write.until?.(token);
    return {
      id: String(token.id),
      attempt: columns.encodeAttempt(token),
      expiry: columns.encodeTime(token.expiry),
      latest: columns.encodeTime(token.latestExpiry),
      until: until === undefined ? null : columns.encodeTime(until),
    };
  }
}

/** The SQL of a token's parts. */
interface Held {
  readonly id: string;
  readonly attempt: string;
  readonly expiry: string;
  readonly latest: string;
}

const HELD: Held = {
  id: "held.id",
  attempt: "held.attempt",
  expiry: "held.expiry",
  latest: "held.latest",
};

function verb(columns: Columns, write: LeaseWrite<never>, until: string): string {
  const { table, attempt, lockedUntil } = columns;
  if (write === "delete") return `DELETE FROM ${table} AS t`;
  const back = write.giveBack ? `, ${attempt} = t.${attempt} - 1` : "";
  return `UPDATE ${table} AS t SET ${lockedUntil} = ${until}${back}`;
}

/** The row is written only while the token still owns it. */
function guard({ id, attempt, lockedUntil }: Columns, held: Held): string {
  const fence = attempt === undefined
    ? `t.${lockedUntil} IN (${held.expiry}, ${held.latest})`
    : `t.${attempt} = ${held.attempt} AND t.${lockedUntil} <= ${held.latest}`;
  return `t.${id} = ${held.id} AND ${fence}`;
}

function returning({ id }: Columns): string {
  return `RETURNING t.${id}::text AS id`;
}
