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
  | "processedAt";

/** A role whose column holds a time. */
export type TimeRole = "lockedUntil" | "retryAfter" | "processedAt";

/** The column of each role that is described. */
export function columnNames(table: TableDescription): Readonly<Record<Role, string | undefined>> {
  return {
    id: table.id.column,
    payload: table.payload.column,
    attempt: table.attempt,
    lockedUntil: table.lockedUntil,
    group: table.group,
    priority: table.priority,
    retryAfter: table.retryAfter,
    processedAt: table.processedAt,
  };
}

/** The columns that the key of the advisory lock is made of. */
export function keyColumns({ lockKey = [] }: TableDescription): readonly string[] {
  return lockKey.flatMap((part) => typeof part === "string" ? [] : [part.column]);
}
