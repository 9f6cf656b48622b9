import { type QueueSql, where } from "./queue_sql.ts";
import { free } from "./ranges.ts";

/**
 * What `WITH RECURSIVE` defines as `priorities`: those of rows that are not leased, from the smallest.
 * Ends with a NULL, when there is no further priority. Each is the first of the index: for a `min` the
 * planner may count on few rows, and read them all.
 */
export function priorities<Values extends { readonly now: number }>(sql: QueueSql<Values>): string {
  const { table, priority } = sql.columns;
  const next = (...more: string[]): string =>
    `(SELECT t.${priority} FROM ${table} AS t ${where([...free(sql), ...more])}` +
    `ORDER BY t.${priority} LIMIT 1)`;
  return `priorities(priority) AS (
  SELECT ${next()}
  UNION ALL
  SELECT ${next(`t.${priority} > p.priority`)}
  FROM priorities AS p WHERE p.priority IS NOT NULL
)`;
}
