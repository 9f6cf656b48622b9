import type { SearchValues } from "../driver/dialect.ts";
import type { QueueSql } from "./queue_sql.ts";
import { type Sql, sql } from "../driver/sql.ts";

/** A range of an index, in claim order. */
export interface Range {
  /** What holds for its rows. */
  readonly conditions: readonly Sql<SearchValues>[];
  /** Whether its rows have due times, by which they are ordered before the id. */
  readonly hasDue: boolean;
}

/** The ranges of claimable rows that are not leased, of one priority where there are priorities. */
export function ranges(queue: QueueSql): readonly Range[] {
  const { priority, retryAfter, dueMayBeNull } = queue.columns;
  const conditions = priority === undefined
    ? queue.free()
    : [...queue.free(), sql<SearchValues>`t.${priority} = ${({ priority }) => priority}`];
  if (retryAfter === undefined) return [{ conditions, hasDue: false }];
  const due: Range = {
    conditions: [...conditions, sql`t.${retryAfter} <= ${queue.times.now("retryAfter")}`],
    hasDue: true,
  };
  if (!dueMayBeNull) return [due];
  return [{ conditions: [...conditions, sql`t.${retryAfter} IS NULL`], hasDue: false }, due];
}

/** What the rows of a range are ordered by. */
export function orderOf({ hasDue }: Range, { columns: { id, retryAfter } }: QueueSql): string {
  return hasDue ? `t.${retryAfter}, t.${id}` : `t.${id}`;
}
