import type { Failure, RowAt } from "../driver/dialect.ts";
import type { SqlValue } from "../driver/driver.ts";
import type { SessionWrite } from "../driver/session_writes.ts";
import { join, type Sql, sql, type SqlPart } from "../driver/sql.ts";
import type { TimeRole } from "../driver/roles.ts";
import type { Columns } from "./columns.ts";
import { type QueueSql, where } from "./queue_sql.ts";

/**
 * A write of a row that a session holds. It returns the row's id.
 *
 * @param guard what holds for the row while it is the session's
 */
export function sessionWrite<Values extends RowAt>(
  { columns }: QueueSql,
  write: SessionWrite<Values>,
  guard: readonly SqlPart<Values>[],
): Sql<Values> {
  const { id, table } = columns;
  const verb = write === "delete"
    ? sql<Values>`DELETE FROM ${table}`
    : sql<Values>`UPDATE ${table} SET ${join(assignments(columns, write), ", ")}`;
  return sql`${verb} ${where(...guard)}RETURNING ${id} AS id`;
}

function assignments<Values extends RowAt>(
  columns: Columns,
  { attempt, dueAfter, done }: Exclude<SessionWrite<Values>, "delete">,
): readonly SqlPart<Values>[] {
  const time = (role: TimeRole, of: (values: Values) => number): Sql<Values> =>
    sql`${columns[role]!} = ${(values: Values): SqlValue => columns.encodeTime(role, of(values))}`;
  return [
    ...(dueAfter === undefined
      ? []
      : [time("retryAfter", (values) => values.now + dueAfter(values))]),
    ...(done ? [time("processedAt", ({ now }) => now)] : []),
    ...(attempt === "count" ? columns.countAttempt : []),
    ...(attempt === "give back"
      ? [`${columns.attempt} = ${columns.attempt} - 1`]
      : failure(columns)),
  ];
}

/** Sets the role `lastError` to the caller's error, if there is one; nothing without the role. */
export function failure<Values>(columns: Columns): readonly Sql<Values>[] {
  const { lastError } = columns;
  if (lastError === undefined) return [];
  const error = (values: Values): SqlValue => columns.encodeError((values as Failure).error);
  return [sql`${lastError} = coalesce(${error}, ${lastError})`];
}
