import { DriverError, type DriverErrorKind } from "../errors.ts";

/** What an error of either SQLite library means. */
export function classify(error: unknown): DriverErrorKind {
  if (error instanceof DriverError) return error.kind;
  const primary = resultCode(error);
  if (primary !== undefined && primary !== SQLITE_ERROR) return KIND_BY_CODE[primary] ?? "other";
  const message = error instanceof Error ? error.message : String(error);
  return KIND_BY_MESSAGE.find(([pattern]) => pattern.test(message))?.[1] ?? "other";
}

/** The primary result code, where the library gives one (sqlite.org/rescode.html). */
function resultCode(error: unknown): number | undefined {
  const { errcode, code } = (error ?? {}) as { errcode?: unknown; code?: unknown };
  const extended = typeof errcode === "number" ? errcode : code;
  return typeof extended === "number" ? extended & 0xff : undefined;
}

const SQLITE_ERROR = 1;
const KIND_BY_CODE: Readonly<Record<number, DriverErrorKind>> = {
  5: "conflict", // BUSY
  6: "conflict", // LOCKED
  8: "read-only", // READONLY
  11: "unusable", // CORRUPT
  14: "unusable", // CANTOPEN
  15: "conflict", // PROTOCOL: the lock of the WAL was not to be had
  19: "constraint", // CONSTRAINT
  26: "unusable", // NOTADB
};

/** `exec` of node:sqlite and `step` of @db/sqlite throw errors without a code. */
const KIND_BY_MESSAGE: readonly (readonly [RegExp, DriverErrorKind])[] = [
  [/database (table |schema )?is locked/, "conflict"],
  [/readonly database/, "read-only"],
  [/not a database|unable to open|malformed/, "unusable"],
  [/constraint failed/, "constraint"],
  [/no such (table|column)|has no column named/, "missing"],
  [/database is (not open|closed)/i, "disconnected"],
];
