import type { QueueUse, RowAt } from "../driver/dialect.ts";
import type { SessionWrite } from "../driver/session_writes.ts";
import type { Statement } from "../driver/statement.ts";
import type { Columns } from "./columns.ts";
import { QueueSql } from "./queue_sql.ts";

/**
 * A write of a row that a session holds. It returns the row's id.
 *
 * @param guard what holds for the row while it is the session's
 */
export function sessionWrite<Values extends RowAt>(
  columns: Columns,
  use: QueueUse,
  write: SessionWrite<Values>,
  guard: (sql: QueueSql<Values>) => readonly string[],
): Statement<Values> {
  const sql = new QueueSql<Values>(columns, use);
  const verb = write === "delete"
    ? `DELETE FROM ${columns.table} AS t`
    : `UPDATE ${columns.table} AS t SET ${assignments(sql, write).join(", ")}`;
  return sql.statement(
    `${verb} WHERE ${guard(sql).join(" AND ")} RETURNING t.${columns.id}::text AS id`,
  );
}

function assignments<Values extends RowAt>(
  sql: QueueSql<Values>,
  { attempt, dueAfter, done }: Exclude<SessionWrite<Values>, "delete">,
): readonly string[] {
  const { columns, times } = sql;
  return [
    ...(dueAfter === undefined
      ? []
      : [`${columns.retryAfter} = ${times.after("retryAfter", dueAfter)}`]),
    ...(done ? [`${columns.processedAt} = ${times.now("processedAt")}`] : []),
    ...(attempt === "count" ? columns.countAttempt : []),
    ...(attempt === "give back" ? [`${columns.attempt} = t.${columns.attempt} - 1`] : []),
    ...(attempt === "give back" ? [] : sql.failure),
  ];
}
