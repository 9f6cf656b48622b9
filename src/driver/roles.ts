import type { TableDescription } from "./dialect.ts";

/** A role that a column plays. */
export type Role =
  | "id"
  | "payload"
  | "attempt"
  | "lockedUntil"
  | "group"
  | "priority"
  | "retryAfter"
  | "processedAt"
  | "headers"
  | "partitionKey"
  | "uniqueKey"
  | "lastError";

/** A role whose column holds a time. */
export type TimeRole = "lockedUntil" | "retryAfter" | "processedAt";

/** The column of each role that is described. */
export function columnNames(table: TableDescription): Readonly<Record<Role, string | undefined>> {
  return {
    id: table.id.column,
    payload: table.payload?.column,
    attempt: table.attempt,
    lockedUntil: table.lockedUntil,
    group: table.group,
    priority: table.priority,
    retryAfter: table.retryAfter,
    processedAt: table.processedAt,
    headers: table.headers,
    partitionKey: table.partitionKey,
    uniqueKey: table.uniqueKey,
    lastError: table.lastError,
  };
}

/** The columns that the key of the advisory lock is made of. */
export function keyColumns({ lockKey = [] }: TableDescription): readonly string[] {
  return lockKey.flatMap((part) => typeof part === "string" ? [] : [part.column]);
}

/** The columns of which no two rows may hold the same, for the role `uniqueKey`; none without it. */
export function uniqueColumns({ group, uniqueKey }: TableDescription): readonly string[] {
  if (uniqueKey === undefined) return [];
  return group === undefined ? [uniqueKey] : [group, uniqueKey];
}

/** The longest error that is kept, in characters, where the column could hold a longer one. */
export const LONGEST_ERROR = 10_000;

/** Text cut to so many characters, never in the middle of one. */
export function cutText(text: string, length: number): string {
  return text.length <= length ? text : text.slice(0, length).toWellFormed().replace(/\uFFFD$/, "");
}
