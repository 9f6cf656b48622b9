import type { Candidate, CandidatePart, SearchPlan, SearchValues } from "../driver/dialect.ts";
import { lockName } from "./lock_name.ts";
import { nextPriority } from "./next_priority.ts";
import type { QueueSql } from "./queue_sql.ts";
import { orderOf, type Range, ranges } from "./ranges.ts";
import { type Sql, sql, where } from "../driver/sql.ts";

/**
 * Finds rows that may be claimed once the lock of their key is taken, page by page. Whether a lock is
 * held is asked above the page, and so only of its rows.
 */
export function candidates(queue: QueueSql, key: Sql): SearchPlan<CandidatePart> {
  return {
    first: [],
    each: ranges(queue).map((range) => ({
      first: page(queue, key, range, range.conditions),
      next: page(queue, key, range, [...range.conditions, behind(queue, range)]),
    })),
    ...nextPriority(queue),
  };
}

function page<Values extends SearchValues>(
  queue: QueueSql,
  key: Sql,
  range: Range,
  conditions: readonly Sql<Values>[],
): Sql<Values> {
  const { columns } = queue;
  const due = range.hasDue ? `t.${columns.retryAfter}` : "NULL";
  const rows: Sql<Values> =
    sql`SELECT t.${columns.id} AS id, ${key} AS lock_key, ${due} AS due FROM ${
      columns.tableBy("free")
    } ${where(conditions)}ORDER BY ${orderOf(range, queue)} LIMIT ${({ limit }) => BigInt(limit)}`;
  const held = `IS_USED_LOCK(${lockName("page.lock_key")}) IS NOT NULL`;
  return sql`SELECT page.*, ${held} AS held FROM (${rows}) AS page ORDER BY page.due, page.id`;
}

type NextValues = SearchValues & { readonly after: Candidate };

/** What holds for the rows of a range behind a candidate: two ranges of the index where it has a time. */
function behind({ columns }: QueueSql, { hasDue }: Range): Sql<NextValues> {
  const { id, retryAfter } = columns;
  const next: Sql<NextValues> = sql`t.${id} > ${({ after }: NextValues) => after.id}`;
  if (!hasDue) return next;
  const last = ({ after }: NextValues) => after.due;
  const due: Sql<NextValues> = columns.countsMilliseconds("retryAfter")
    ? sql`${last}`
    : sql`CAST(${last} AS DATETIME(6))`;
  return sql`(t.${retryAfter!} > ${due} OR (t.${retryAfter!} = ${due} AND ${next}))`;
}
