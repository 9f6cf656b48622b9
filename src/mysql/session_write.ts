import type { Failure, RowAt } from "../driver/dialect.ts";
import type { SqlValue } from "../driver/driver.ts";
import type { SessionWrite } from "../driver/session_writes.ts";
import { join, type Sql, sql, type SqlPart, where } from "../driver/sql.ts";
import type { Columns } from "./columns.ts";
import type { QueueSql } from "./queue_sql.ts";

/**
 * A write of a row that a session holds.
 *
 * @param guard what holds for the row while it is the session's
 */
export function sessionWrite<Values extends RowAt>(
  queue: QueueSql,
  write: SessionWrite<Values>,
  guard: readonly SqlPart<Values>[],
): Sql<Values> {
  const { table } = queue.columns;
  const verb = write === "delete"
    ? sql<Values>`DELETE t FROM ${table} AS t`
    : sql<Values>`UPDATE ${table} AS t SET ${join(assignments(queue, write), ", ")}`;
  return sql`${verb} ${where(guard)}`;
}

function assignments<Values extends RowAt>(
  { columns, times }: QueueSql,
  { attempt, dueAfter, done }: Exclude<SessionWrite<Values>, "delete">,
): readonly SqlPart<Values>[] {
  return [
    ...(dueAfter === undefined
      ? []
      : [sql<Values>`t.${columns.retryAfter!} = ${times.after("retryAfter", dueAfter)}`]),
    ...(done ? [sql<Values>`t.${columns.processedAt!} = ${times.present("processedAt")}`] : []),
    ...(attempt === "count" ? columns.countAttempt : []),
    ...(attempt === "give back"
      ? [`t.${columns.attempt} = t.${columns.attempt} - 1`]
      : failure<Values>(columns)),
  ];
}

/** Sets the role `lastError` to the caller's error, if there is one; nothing without the role. */
export function failure<Values>(columns: Columns): readonly Sql<Values>[] {
  const { lastError } = columns;
  if (lastError === undefined) return [];
  const error = (values: Values): SqlValue => columns.encodeError((values as Failure).error);
  return [sql`t.${lastError} = COALESCE(${error}, t.${lastError})`];
}
