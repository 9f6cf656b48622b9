import type {
  Clock,
  GuardedStatement,
  GuardedWrite,
  LeaseStatements,
  LeaseToken,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import { type LeaseWrite, leaseWrites } from "../driver/lease_writes.ts";
import type { Statement } from "../driver/statement.ts";
import { Columns } from "./columns.ts";
import { leaseClaim } from "./lease_claim.ts";

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
    look: {
      text: `SELECT ${columns.id} AS id FROM ${columns.table} WHERE ${columns.id} = ?`,
      params: [({ id }) => id],
    },
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

/** The write under guard. Rows are counted, not returned: neither database returns both kinds. */
function guarded<Extra>(columns: Columns, write: LeaseWrite<Extra>): GuardedWrite<Extra> {
  return { one: writeOne(columns, write), many: writeMany(columns, write) };
}

function writeOne<Extra>(columns: Columns, write: LeaseWrite<Extra>): GuardedStatement<Extra> {
  const { id, attempt, lockedUntil, timeParameter } = columns;
  const until = write === "delete" ? undefined : write.until;
  const fence = attempt === undefined
    ? `t.${lockedUntil} IN (${timeParameter}, ${timeParameter})`
    : `t.${attempt} = ? AND t.${lockedUntil} <= ${timeParameter}`;
  return {
    text: `${verb(columns, write)} ${
      set(columns, write, until === undefined ? "NULL" : timeParameter)
    }WHERE t.${id} = ? AND ${fence}`,
    params: [
      ...(until === undefined ? [] : [(values: Extra) => columns.encodeTime(until(values))]),
      ({ id }: LeaseToken) => typeof id === "bigint" ? id : String(id),
      ({ attempt, expiry }: LeaseToken) =>
        columns.attempt === undefined ? columns.encodeTime(expiry) : BigInt(attempt ?? 0),
      ({ latestExpiry }: LeaseToken) => columns.encodeTime(latestExpiry),
    ],
  };
}

/** Driven by the tokens, so that each row is reached, and locked, by its primary key only. */
function writeMany<Extra>(
  columns: Columns,
  write: LeaseWrite<Extra>,
): Statement<readonly (LeaseToken & Extra)[]> {
  const { id, attempt, lockedUntil, idType, timeType } = columns;
  const held = `JSON_TABLE(?, '$[*]' COLUMNS (id ${idType} PATH '$.id', ` +
    `attempt BIGINT PATH '$.attempt', expiry ${timeType} PATH '$.expiry', ` +
    `latest ${timeType} PATH '$.latest', until ${timeType} PATH '$.until')) AS held`;
  const fence = attempt === undefined
    ? `t.${lockedUntil} IN (held.expiry, held.latest)`
    : `t.${attempt} = held.attempt AND t.${lockedUntil} <= held.latest`;
  return {
    text: `${verb(columns, write)} JOIN ${held} ON t.${id} = held.id ${
      set(columns, write, "held.until")
    }WHERE ${fence}`,
    params: [(tokens) => JSON.stringify(tokens.map(encode))],
  };

  function encode(token: LeaseToken & Extra): Readonly<Record<string, string | null>> {
    const until = write === "delete" ? undefined : write.until?.(token);
    return {
      id: String(token.id),
      attempt: String(token.attempt ?? 0),
      expiry: String(columns.encodeTime(token.expiry)),
      latest: String(columns.encodeTime(token.latestExpiry)),
      until: until === undefined ? null : String(columns.encodeTime(until)),
    };
  }
}

function verb({ table }: Columns, write: LeaseWrite<never>): string {
  return write === "delete" ? `DELETE t FROM ${table} AS t` : `UPDATE ${table} AS t`;
}

function set({ attempt, lockedUntil }: Columns, write: LeaseWrite<never>, until: string): string {
  if (write === "delete") return "";
  const back = write.giveBack ? `, t.${attempt} = t.${attempt} - 1` : "";
  return `SET t.${lockedUntil} = ${until}${back} `;
}
