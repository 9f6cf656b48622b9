import type { SearchValues } from "../driver/dialect.ts";
import { type Sql, sql } from "../driver/sql.ts";
import { type QueueSql, where } from "./queue_sql.ts";

/**
 * Finds the head of a FIFO queue, if it may be claimed: the first of all rows that are not done,
 * whether due or leased, and no row of the queue is leased. Nobody else writes meanwhile.
 */
export function headSearch(queue: QueueSql): Sql<SearchValues> {
  const { columns: { id, priority, table } } = queue;
  const order = [priority, id].filter((column) => column !== undefined).join(", ");
  const head = sql<SearchValues>`SELECT ${id} FROM ${table} ${
    where(...queue.rows(), queue.readable)
  }ORDER BY ${order} LIMIT 1`;
  const conditions: Sql<SearchValues>[] = [sql`${id} = (${head})`, ...queue.due()];
  if (queue.columns.lockedUntil !== undefined) {
    const leased = sql<SearchValues>`SELECT 1 FROM ${table} ${
      where(...queue.rows(), ...queue.leased())
    }`;
    conditions.push(...queue.unleased(), sql`NOT EXISTS (${leased})`);
  }
  return sql`SELECT ${id} AS id FROM ${table} ${where(...conditions)}`;
}
