import {
  type Clock,
  expiryOf,
  type FindThenTake,
  type LeaseTimes,
  type MessageId,
} from "../driver/dialect.ts";
import type { SqlValue } from "../driver/driver.ts";
import type { Statement } from "../driver/statement.ts";
import type { Columns } from "./columns.ts";

/**
 * Claims in a short transaction: neither database returns the rows of an UPDATE. Rows are found by
 * ranges of one index, so that none is locked and then rejected.
 */
export function leaseClaim(columns: Columns, clock: Clock): FindThenTake {
  return {
    kind: "find, then take",
    find: [expired(columns, clock), free(columns)],
    take: take(columns, clock),
    fetch: fetch(columns, clock),
  };
}

interface FindValues {
  readonly now: number;
  readonly limit: number;
}

/** Rows whose lease has ended, in order of expiry. */
function expired(columns: Columns, clock: Clock): Statement<FindValues> {
  const { id, table, lockedUntil } = columns;
  const now = clock === "database" ? databaseNow(columns) : columns.timeParameter;
  return {
    text: `SELECT ${id} AS id FROM ${table} WHERE ${lockedUntil} <= ${now} ` +
      `ORDER BY ${lockedUntil}, ${id} LIMIT ? FOR UPDATE SKIP LOCKED`,
    params: [
      ...(clock === "database" ? [] : [({ now }: FindValues) => columns.encodeTime(now)]),
      ({ limit }) => BigInt(limit),
    ],
  };
}

/** Rows that nobody has claimed, in order of id. */
function free({ id, table, lockedUntil }: Columns): Statement<FindValues> {
  return {
    text: `SELECT ${id} AS id FROM ${table} WHERE ${lockedUntil} IS NULL ` +
      `ORDER BY ${id} LIMIT ? FOR UPDATE SKIP LOCKED`,
    params: [({ limit }) => BigInt(limit)],
  };
}

interface IdValues {
  readonly ids: readonly MessageId[];
}

function take(columns: Columns, clock: Clock): Statement<LeaseTimes & IdValues> {
  const { id, table, attempt, lockedUntil, highestAttempt } = columns;
  const until: Statement<LeaseTimes> = clock === "database"
    ? {
      text: columns.countsMilliseconds
        ? "(UNIX_TIMESTAMP() + 1 + ?) * 1000"
        : "UTC_TIMESTAMP() + INTERVAL (1 + ?) SECOND",
      params: [({ leaseSeconds }) => BigInt(leaseSeconds)],
    }
    : { text: columns.timeParameter, params: [(times) => columns.encodeTime(expiryOf(times))] };
  const count = attempt === undefined
    ? ""
    : `, t.${attempt} = LEAST(GREATEST(COALESCE(t.${attempt}, 1), 1), ${highestAttempt}) + 1`;
  return {
    text: `UPDATE ${table} AS t JOIN ${idTable(columns)} ON t.${id} = due.id ` +
      `SET t.${lockedUntil} = ${until.text}${count}`,
    params: [({ ids }) => idList(ids), ...until.params],
  };
}

/** The rows that were taken. They are locked, so nobody else has changed them since. */
function fetch(columns: Columns, clock: Clock): Statement<IdValues> {
  const { id, table, attempt, lockedUntil, payload } = columns;
  const said = clock === "database" ? `, UNIX_TIMESTAMP(UTC_TIMESTAMP(3)) * 1000 AS now` : "";
  return {
    text: `SELECT t.${id} AS id, t.${payload} AS payload, ` +
      `${columns.milliseconds(`t.${lockedUntil}`)} AS expiry` +
      `${attempt === undefined ? "" : `, t.${attempt} AS attempt`}${said} ` +
      `FROM ${table} AS t JOIN ${idTable(columns)} ON t.${id} = due.id`,
    params: [({ ids }) => idList(ids)],
  };
}

/** The statement's own time, for which an index can be searched. */
function databaseNow({ countsMilliseconds }: Columns): string {
  return countsMilliseconds ? "FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000)" : "UTC_TIMESTAMP(6)";
}

function idTable({ idType }: Columns): string {
  return `JSON_TABLE(?, '$[*]' COLUMNS (id ${idType} PATH '$')) AS due`;
}

/** Ids as JSON text: numbers in it are read exactly. */
function idList(ids: readonly MessageId[]): SqlValue {
  return JSON.stringify(ids.map(String));
}
