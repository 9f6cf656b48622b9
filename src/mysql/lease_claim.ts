import {
  expiryOf,
  type FindThenTake,
  type LeaseTimes,
  type MessageId,
  type QueueUse,
} from "../driver/dialect.ts";
import type { Columns } from "./columns.ts";
import { QueueSql } from "./queue_sql.ts";
import { search } from "./search.ts";
import { join, type Sql, sql } from "../driver/sql.ts";
import { Times } from "./times.ts";

/** Claims in a short transaction: neither database returns the rows of an UPDATE. */
export function leaseClaim(columns: Columns, use: QueueUse, fifo: boolean): FindThenTake {
  return {
    kind: "find, then take",
    find: search(new QueueSql(columns, use), found(columns), fifo),
    take: take(columns, use),
    fetch: fetch(columns, use),
  };
}

/** The id, and what is in no index: one that covered the search would lock a row too many. */
function found({ id, attempt, payload, inNoIndex }: Columns): string {
  const rest = attempt ?? payload ?? inNoIndex;
  if (rest === undefined) return `t.${id} AS id`;
  return `t.${id} AS id, t.${rest}${attempt === undefined ? " IS NULL" : ""} AS rest`;
}

interface IdValues {
  readonly ids: readonly MessageId[];
}

function take(columns: Columns, use: QueueUse): Sql<LeaseTimes & IdValues> {
  const { lockedUntil, countAttempt } = columns;
  const set = join([sql`t.${lockedUntil!} = ${expiry(columns, use)}`, ...countAttempt], ", ");
  return sql<LeaseTimes & IdValues>`UPDATE ${rowsById(columns)} SET ${set}`;
}

/** When a lease that is taken now ends: at a whole second. */
function expiry(columns: Columns, use: QueueUse): Sql<LeaseTimes> {
  if (use.clock === "given") return new Times(columns, use.clock).known("lockedUntil", expiryOf);
  const seconds = ({ leaseSeconds }: LeaseTimes): bigint => BigInt(leaseSeconds);
  return columns.countsMilliseconds("lockedUntil")
    ? sql`(UNIX_TIMESTAMP() + 1 + ${seconds}) * 1000`
    : sql`UTC_TIMESTAMP() + INTERVAL (1 + ${seconds}) SECOND`;
}

/** The rows that were taken. They are locked, so nobody else has changed them since. */
function fetch(columns: Columns, { clock }: QueueUse): Sql<IdValues> {
  const { delivered, lockedUntil } = columns;
  const said = clock === "database" ? ", UNIX_TIMESTAMP(UTC_TIMESTAMP(3)) * 1000 AS now" : "";
  const expiry = columns.countsMilliseconds("lockedUntil")
    ? `t.${lockedUntil}`
    : `CAST(ROUND(UNIX_TIMESTAMP(t.${lockedUntil}) * 1000) AS SIGNED)`;
  return sql`SELECT ${delivered}, ${expiry} AS expiry${said} FROM ${rowsById(columns)}`;
}

/** The rows with these ids, and no others, whatever the server thinks of a small table. */
function rowsById(columns: Columns): Sql<IdValues> {
  // As JSON text: numbers in it are read exactly.
  const ids = ({ ids }: IdValues): string => JSON.stringify(ids.map(String));
  const type = columns.type("id");
  return sql`JSON_TABLE(${ids}, '$[*]' COLUMNS (id ${type} PATH '$')) AS due STRAIGHT_JOIN ${
    columns.tableBy("row")
  } ON t.${columns.id} = due.id`;
}
