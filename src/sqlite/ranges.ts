import type { SearchValues } from "../driver/dialect.ts";
import { type Sql, sql } from "../driver/sql.ts";
import type { QueueSql } from "./queue_sql.ts";

/** A range of an index, in claim order. */
export interface Range {
  /** What holds for its rows. */
  readonly conditions: readonly Sql<SearchValues>[];
  /** What they are ordered by. */
  readonly order: string;
  /** Whether its rows have due times, by which they are ordered before the id. */
  readonly hasDue: boolean;
}

/** The ranges of claimable rows that are not leased, of one priority where there are priorities. */
export function ranges(queue: QueueSql): readonly Range[] {
  const { id, priority, retryAfter, dueMayBeNull } = queue.columns;
  const conditions: readonly Sql<SearchValues>[] = [
    ...queue.free(),
    ...(priority === undefined
      ? []
      : [sql<SearchValues>`${priority} = ${({ priority }) => priority}`]),
  ];
  if (retryAfter === undefined) {
    return [{ conditions: [...conditions, sql`${queue.readable}`], order: id, hasDue: false }];
  }
  const due: Range = {
    conditions: [...conditions, queue.hasCome("retryAfter"), sql`${queue.readable}`],
    order: queue.order("retryAfter"),
    hasDue: true,
  };
  if (!dueMayBeNull) return [due];
  const always: Range = {
    conditions: [...conditions, sql`${retryAfter} IS NULL`, sql`${queue.readable}`],
    order: id,
    hasDue: false,
  };
  return [always, due];
}
