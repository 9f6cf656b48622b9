import { Buffer } from "node:buffer";
import type { QueryResult, SqlRow, SqlValue } from "../driver/driver.ts";
import type { ClientChanges, ClientResult, Command, Field } from "./client.ts";
import { integer } from "./own_client.ts";

/** What a statement gave back, and, where it returned no rows, whether a transaction is open. */
export interface Reply extends QueryResult {
  readonly inTransaction: boolean | undefined;
}

/** One run of a statement as the client takes it. */
export function command(text: string, params: readonly SqlValue[]): Command {
  return {
    sql: text,
    values: params.map(encode),
    supportBigNumbers: true,
    bigNumberStrings: true,
    namedPlaceholders: false,
    nestTables: false,
    rowsAsArray: false,
    typeCast: decode,
  };
}

/** How many bytes of a packet a statement and its parameters take, or somewhat more. */
export function sizeOf(text: string, params: readonly SqlValue[]): number {
  return params.reduce<number>(
    (sum, value) => sum + BYTES_PER_PARAMETER + lengthOf(value),
    lengthOf(text),
  );
}

/**
 * Reads what the client made of a reply. The id that an INSERT made comes as its row, `{ id }`,
 * unless the statement returns rows itself; for an INSERT of many rows it is that of the first.
 */
export function readReply(result: ClientResult): Reply {
  if (isRows(result)) return { rows: result as SqlRow[], changes: 0, inTransaction: undefined };
  const id = BigInt.asUintN(64, BigInt(result.insertId));
  return {
    rows: id === 0n ? [] : [{ id }],
    changes: Number(result.affectedRows),
    inTransaction: (result.serverStatus & IN_TRANSACTION) !== 0,
  };
}

function isRows(result: ClientResult): result is Exclude<ClientResult, ClientChanges> {
  return Array.isArray(result);
}

function lengthOf(value: SqlValue): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  return value instanceof Uint8Array ? value.byteLength : 0;
}

/** A value as the client sends it. */
export function encode(value: SqlValue): unknown {
  if (typeof value === "bigint") return integer(value);
  if (Number.isSafeInteger(value)) return integer(BigInt(value as number));
  // The client takes no other bytes for bytes.
  if (value instanceof Uint8Array) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
  return value;
}

/** Values pass as the server's own text where there is no exact type for them here. */
function decode(field: Field, next: () => unknown): SqlValue {
  switch (field.type) {
    case "LONGLONG": {
      const text = next() as string | null;
      return text === null ? null : BigInt(text);
    }
    case "DATETIME":
    case "TIMESTAMP":
    case "NEWDATE":
      return withFraction(field.string(), field.length - DATETIME_LENGTH);
    case "TIME":
      return withFraction(field.string(), field.length - TIME_LENGTH);
    case "DATE":
    case "DECIMAL":
    case "NEWDECIMAL":
      return field.string();
    case "JSON":
      return field.string("utf8");
    case "GEOMETRY":
    case "VECTOR":
      return copyOf(field.buffer());
  }
  if (field.extendedFormat === "json") return field.string();
  const value = next() as SqlValue;
  return value instanceof Uint8Array ? copyOf(value) : value;
}

/** The client leaves out a fraction of a second that is zero, or its last zeros; the server does not. */
function withFraction(text: string | null, length: number): string | null {
  if (text === null || length <= 1) return text;
  const [whole, fraction = ""] = text.split(".");
  return `${whole}.${fraction.padEnd(length - 1, "0")}`;
}

/** The client's own buffers are parts of larger ones. */
function copyOf(bytes: Uint8Array | null): Uint8Array | null {
  return bytes === null ? null : new Uint8Array(bytes);
}

const BYTES_PER_PARAMETER = 16;
const IN_TRANSACTION = 1;
/** Of `2026-01-31 10:00:00`. */
const DATETIME_LENGTH = 19;
/** Of `-838:59:59`. */
const TIME_LENGTH = 10;
