import type { SearchPlan } from "../driver/dialect.ts";
import { sql } from "../driver/sql.ts";
import { type QueueSql, where } from "./queue_sql.ts";

/** Finds the next priority; nothing where there are none. What is no integer is passed over. */
export function nextPriority(queue: QueueSql): Pick<SearchPlan<never>, "nextPriority"> {
  const { columns: { priority, table } } = queue;
  if (priority === undefined) return {};
  const atLeast = sql<{ readonly atLeast: bigint }>`${priority} >= ${({ atLeast }) => atLeast}`;
  const conditions = [...queue.free(), atLeast, `typeof(${priority}) = 'integer'`];
  return {
    nextPriority: sql`SELECT ${priority} AS priority FROM ${table} ${
      where(...conditions)
    }ORDER BY ${priority} LIMIT 1`,
  };
}
