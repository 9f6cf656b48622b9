import type { QueueSql } from "./queue_sql.ts";

/** A range of an index, in claim order. */
export interface Range {
  /** What holds for its rows. */
  readonly conditions: readonly string[];
  /** What they are ordered by. */
  readonly order: readonly string[];
  /** Whether its rows have due times, by which they are ordered before the id. */
  readonly hasDue: boolean;
}

/**
 * The ranges of claimable rows that are not leased, of one priority where there are priorities. The
 * order names the columns that are equal in all of a range too: NULLs are not known to be equal, and
 * would be sorted.
 */
export function ranges<Values extends { readonly now: number }>(
  sql: QueueSql<Values>,
  priority: string,
): readonly Range[] {
  const { columns, times } = sql;
  const { id, retryAfter } = columns;
  const conditions = columns.priority === undefined
    ? free(sql)
    : [...free(sql), `t.${columns.priority} = ${priority}`];
  if (retryAfter === undefined) return [{ conditions, order: [`t.${id}`], hasDue: false }];
  const order = [`t.${retryAfter}`, `t.${id}`];
  const due: Range = {
    conditions: [...conditions, `t.${retryAfter} <= ${times.now("retryAfter")}`],
    order,
    hasDue: true,
  };
  if (!columns.dueMayBeNull) return [due];
  const always: Range = {
    conditions: [...conditions, `t.${retryAfter} IS NULL`],
    order,
    hasDue: false,
  };
  return [always, due];
}

/** What holds for the rows of every range. */
export function free<Values extends { readonly now: number }>(
  { columns, rows }: QueueSql<Values>,
): readonly string[] {
  const { lockedUntil } = columns;
  return lockedUntil === undefined ? rows : [...rows, `t.${lockedUntil} IS NULL`];
}
