import type { SearchPlan, SearchValues } from "../driver/dialect.ts";
import { type Sql, sql } from "../driver/sql.ts";
import type { Statement } from "../driver/statement.ts";
import { headSearch } from "./head_search.ts";
import { nextPriority } from "./next_priority.ts";
import { type QueueSql, where } from "./queue_sql.ts";
import { ranges } from "./ranges.ts";

/** Finds the ids of rows that may be leased; of a FIFO queue, of its head. */
export function search(queue: QueueSql, fifo: boolean): SearchPlan<Statement<SearchValues>> {
  if (fifo) return { first: [], each: [headSearch(queue)] };
  return {
    first: [expired(queue)],
    each: ranges(queue).map(({ conditions, order }) => ids(queue, conditions, order)),
    ...nextPriority(queue),
  };
}

/** Rows whose lease has ended. They were due when they were claimed, and are not asked again. */
function expired(queue: QueueSql): Sql<SearchValues> {
  const conditions = [...queue.rows(), queue.hasCome("lockedUntil"), sql`${queue.readable}`];
  return ids(queue, conditions, queue.order("lockedUntil"));
}

function ids(
  { columns: { id, table } }: QueueSql,
  conditions: readonly Sql<SearchValues>[],
  order: string,
): Sql<SearchValues> {
  return sql`SELECT ${id} AS id FROM ${table} ${where(...conditions)}ORDER BY ${order} LIMIT ${(
    { limit },
  ) => BigInt(limit)}`;
}
