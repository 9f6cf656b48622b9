import type { SearchPlan } from "../driver/dialect.ts";
import type { QueueSql } from "./queue_sql.ts";
import { type Sql, sql, where } from "../driver/sql.ts";

interface AtLeast {
  readonly atLeast: bigint;
}

/** Finds the next priority of rows that are not leased, and locks nothing; absent without priorities. */
export function nextPriority(queue: QueueSql): Pick<SearchPlan<never>, "nextPriority"> {
  const { priority, table } = queue.columns;
  if (priority === undefined) return {};
  const atLeast: Sql<AtLeast> = sql`t.${priority} >= ${({ atLeast }: AtLeast) => atLeast}`;
  return {
    nextPriority: sql`SELECT MIN(t.${priority}) AS priority FROM ${table} AS t ${
      where([...queue.free(), atLeast])
    }`,
  };
}
