import {
  expiryOf,
  type FindThenTake,
  type GuardedStatement,
  type GuardedWrite,
  type LeaseStatements,
  type LeaseTimes,
  type LeaseToken,
  type MessageId,
  type TableDescription,
  type TableFacts,
} from "../driver/dialect.ts";
import type { SqlRow, SqlValue } from "../driver/driver.ts";
import { type LeaseWrite, leaseWrites } from "../driver/lease_writes.ts";
import type { Statement } from "../driver/statement.ts";
import { type TimeStorage, timeStorageOf } from "./affinity.ts";
import { quote, quoteTable } from "./quote.ts";

/** The lease form's statements for one table, in the form its columns ask for. */
export function leaseStatements(
  table: TableDescription,
  facts: TableFacts,
): SqliteLeaseStatements {
  const lockedUntil = table.lockedUntil!;
  const columns: Columns = {
    table: quoteTable(table.table),
    id: quote(table.id.column),
    payload: quote(table.payload.column),
    attempt: table.attempt === undefined ? undefined : quote(table.attempt),
    lockedUntil: quote(lockedUntil),
    time: timeStorageOf(facts.columns.get(lockedUntil) ?? "") ?? "milliseconds",
  };
  return {
    claim: {
      kind: "find, then take",
      find: [expired(columns), free(columns)],
      take: take(columns),
    },
    ...leaseWrites(columns.attempt !== undefined, (write) => guarded(columns, write)),
    look: {
      text: `SELECT ${columns.id} AS id FROM ${columns.table} WHERE ${columns.id} = ?`,
      params: [({ id }) => id],
    },
    read: (row) => read(row, columns),
    readId,
  };
}

/** SQLite's claims search first, and take in the same transaction. */
export interface SqliteLeaseStatements extends LeaseStatements {
  readonly claim: FindThenTake;
}

interface Columns {
  readonly table: string;
  readonly id: string;
  readonly payload: string;
  readonly attempt: string | undefined;
  readonly lockedUntil: string;
  readonly time: TimeStorage;
}
interface Now {
  readonly now: number;
}
/** Rows whose lease has ended, in order of expiry. */
function expired(columns: Columns): Statement<Now & { readonly limit: number }> {
  const { id, table, lockedUntil, time } = columns;
  const select = `SELECT ${id} AS id FROM ${table} WHERE`;
  if (time === "milliseconds") {
    return {
      text: `${select} ${lockedUntil} <= ? AND ${readable(columns)} ` +
        `ORDER BY ${lockedUntil}, ${id} LIMIT ?`,
      params: [({ now }) => BigInt(Math.floor(now)), ({ limit }) => BigInt(limit)],
    };
  }
  // Text compares rightly only within one format. The first bound, which an index serves, lets
  // through every due row of either format; julianday, exact to the millisecond, decides.
  return {
    text: `${select} ${lockedUntil} <= ? AND julianday(${lockedUntil}) <= julianday(?) ` +
      `AND ${readable(columns)} ` +
      `ORDER BY julianday(${lockedUntil}), ${id} LIMIT ?`,
    params: [
      ({ now }) => `${iso(now).slice(0, 19)}~`,
      ({ now }) => iso(now),
      ({ limit }) => BigInt(limit),
    ],
  };
}

/** Rows that nobody has claimed, in order of id. */
function free(columns: Columns): Statement<Now & { readonly limit: number }> {
  const { id, table, lockedUntil } = columns;
  return {
    text: `SELECT ${id} AS id FROM ${table} WHERE ${lockedUntil} IS NULL ` +
      `AND ${readable(columns)} ORDER BY ${id} LIMIT ?`,
    params: [({ limit }) => BigInt(limit)],
  };
}

/** SQLite lets an id be NULL, or bytes, which no claim could name again. */
function readable({ id }: Columns): string {
  return `typeof(${id}) IN ('integer', 'text')`;
}

function take(columns: Columns): Statement<LeaseTimes & { readonly ids: readonly MessageId[] }> {
  const { id, table, payload, attempt, lockedUntil } = columns;
  const count = attempt === undefined ? "" : `, ${attempt} = ${nextAttempt(attempt)}`;
  const returning = attempt === undefined ? "" : `, ${attempt} AS attempt`;
  return {
    text: `UPDATE ${table} SET ${lockedUntil} = ?${count} ` +
      `WHERE ${id} IN (SELECT value FROM json_each(?)) ` +
      `RETURNING ${id} AS id, ${lockedUntil} AS expiry, ${payload} AS payload${returning}`,
    params: [(times) => encodeTime(expiryOf(times), columns.time), ({ ids }) => jsonOf(ids)],
  };
}

/** A missing, negative or too large number counts as the nearest that is possible. */
function nextAttempt(attempt: string): string {
  return `min(max(CAST(coalesce(${attempt}, 1) AS INTEGER), 1), 2147483646) + 1`;
}

/** Adds the guard: the row is written only while the token still owns it. */
function guarded<Extra>(columns: Columns, write: LeaseWrite<Extra>): GuardedWrite<Extra> {
  const { table, id, attempt, lockedUntil, time } = columns;
  const until = write === "delete" ? undefined : write.until;
  const fence = attempt === undefined
    ? `${lockedUntil} IN (?, ?)`
    : `${attempt} = ? AND ${lockedUntil} <= ?`;
  const verb = write === "delete"
    ? `DELETE FROM ${table}`
    : `UPDATE ${table} SET ${lockedUntil} = ${until === undefined ? "NULL" : "?"}` +
      (write.giveBack ? `, ${attempt} = ${attempt} - 1` : "");
  const one: GuardedStatement<Extra> = {
    text: `${verb} WHERE ${id} = ? AND ${fence} RETURNING ${id} AS id`,
    params: [
      ...(until === undefined ? [] : [(values: Extra) => encodeTime(until(values), time)]),
      ({ id }: LeaseToken) => id,
      (token: LeaseToken) =>
        attempt === undefined ? encodeTime(token.expiry, time) : BigInt(token.attempt ?? 0),
      ({ latestExpiry }: LeaseToken) => encodeTime(latestExpiry, time),
    ],
  };
  return { one };
}

function read(row: SqlRow, columns: Columns): ReturnType<LeaseStatements["read"]> {
  return {
    id: readId(row),
    attempt: columns.attempt === undefined ? undefined : Number(row.attempt),
    expiry: columns.time === "text" ? Date.parse(String(row.expiry)) : Number(row.expiry),
    payload: row.payload ?? null,
  };
}

/** An id that a statement returned; `@db/sqlite` reads an integer that fits as a number. */
export function readId({ id }: SqlRow): MessageId {
  return typeof id === "string" ? id : BigInt(id as bigint | number);
}

function encodeTime(time: number, storage: TimeStorage): SqlValue {
  return storage === "text" ? iso(time) : BigInt(Math.floor(time));
}

function iso(time: number): string {
  return new Date(time).toISOString();
}

/** Integers are written out: JSON in SQLite reads them exactly. */
function jsonOf(ids: readonly MessageId[]): string {
  return `[${ids.map((id) => typeof id === "bigint" ? `${id}` : JSON.stringify(id)).join(",")}]`;
}
