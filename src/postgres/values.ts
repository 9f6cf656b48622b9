import type { QueryResult, SqlRow, SqlValue } from "../driver/driver.ts";
import type { PostgresStatements } from "./client.ts";

/** How statements are sent. */
export interface Sending {
  /** Whether they are prepared, once per connection. */
  readonly prepare: boolean;
  /** How long the server may leave a statement without an answer, in milliseconds. */
  readonly patience: number;
  /** How often an idle transaction shows the server that its holder lives, in milliseconds. */
  readonly heartbeat: number;
}

/** What a statement gave back, and what the client knows of it besides. */
export interface Reply extends QueryResult {
  /** What the server says it was: `COMMIT`, `ROLLBACK`. */
  readonly command: string | undefined;
  /** The process that serves the connection, as told at its start; a pooler makes one up. */
  readonly process: number | undefined;
}

/**
 * Sends one statement and reads its reply. Values pass as the server's own text, never through the
 * types of the client, which cut microseconds and parse JSON and which a service may have changed.
 */
export async function send(
  sql: PostgresStatements,
  text: string,
  params: readonly SqlValue[],
  prepare: boolean,
): Promise<Reply> {
  const encoded = params.map((value, index) => encode(sql, value, index));
  return readReply(await sql.unsafe(text, encoded, { prepare, simple: false }).raw());
}

/**
 * The server infers the type of a parameter that is declared `unknown`, as it does where none is
 * declared; but the client then has no type to convert the value by.
 */
function encode(sql: PostgresStatements, value: SqlValue | undefined, index: number): unknown {
  if (value instanceof Uint8Array) return value;
  if (value === null) return sql.typed(null, UNKNOWN);
  // The client blames such a mistake on whatever statement is in flight, and loses step.
  if (value === undefined) throw new TypeError(`Cannot send parameter $${index + 1}: undefined`);
  return sql.typed(String(value), UNKNOWN);
}

/** The rows of a raw query of postgres.js, which carry what it knows of the statement. */
interface RawRows extends ReadonlyArray<readonly (Uint8Array | null)[]> {
  readonly count: number | null;
  readonly command: string | undefined;
  readonly columns: readonly Column[] | undefined;
  readonly state: { readonly pid: number } | undefined;
}

interface Column {
  readonly name: string;
  readonly type: number;
}

function readReply(reply: unknown): Reply {
  const raw = reply as RawRows;
  const columns = raw.columns ?? [];
  return {
    rows: Array.from(raw, (row) => readRow(columns, row)),
    changes: columns.length > 0 ? 0 : raw.count ?? 0,
    command: raw.command,
    process: raw.state?.pid,
  };
}

function readRow(columns: readonly Column[], row: readonly (Uint8Array | null)[]): SqlRow {
  return Object.fromEntries(
    columns.map(({ name, type }, index) => [name, decode(type, row[index] ?? null)]),
  );
}

/** Whole numbers are exact, booleans 0 or 1, and what has no type here is the server's text. */
function decode(type: number, bytes: Uint8Array | null): SqlValue {
  if (bytes === null) return null;
  const text = TEXT.decode(bytes);
  switch (type) {
    case BOOL:
      return text === "t" ? 1 : 0;
    case BYTEA:
      return readBytes(text);
    case INT8:
      return BigInt(text);
    case INT2:
    case INT4:
    case OID:
    case FLOAT4:
    case FLOAT8:
      return Number(text);
    default:
      return text;
  }
}

/** The server writes bytes as `\x00ff`, or, by its setting `bytea_output`, in escapes: `\000\377`. */
function readBytes(text: string): Uint8Array {
  if (text.startsWith("\\x")) {
    return Uint8Array.from(
      { length: text.length / 2 - 1 },
      (_, index) => parseInt(text.slice(2 * index + 2, 2 * index + 4), 16),
    );
  }
  const units = text.match(/\\\d{3}|\\\\|[^\\]/gs) ?? [];
  return Uint8Array.from(units, (unit) => {
    if (unit.length === 4) return parseInt(unit.slice(1), 8);
    return unit.charCodeAt(unit.length - 1);
  });
}

/** A byte order mark is part of the value. */
const TEXT = new TextDecoder("utf-8", { ignoreBOM: true });

// Types by number, from pg_type.
const BOOL = 16;
const BYTEA = 17;
const INT8 = 20;
const INT2 = 21;
const INT4 = 23;
const OID = 26;
const FLOAT4 = 700;
const FLOAT8 = 701;
const UNKNOWN = 705;
