import type { Candidate, CandidatePart, SearchPlan, SearchValues } from "../driver/dialect.ts";
import { type Sql, sql } from "../driver/sql.ts";
import { nextPriority } from "./next_priority.ts";
import { type QueueSql, where } from "./queue_sql.ts";
import { type Range, ranges } from "./ranges.ts";

/** Finds rows that may be claimed once the lock of their key is taken, page by page. */
export function candidates(queue: QueueSql, key: string): SearchPlan<CandidatePart> {
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
  { columns: { id, retryAfter, table } }: QueueSql,
  key: string,
  { hasDue, order }: Range,
  conditions: readonly Sql<Values>[],
): Sql<Values> {
  const due = hasDue ? retryAfter! : "NULL";
  return sql`SELECT ${id} AS id, ${key} AS lock_key, ${due} AS due FROM ${table} ${
    where(...conditions)
  }ORDER BY ${order} LIMIT ${({ limit }) => BigInt(limit)}`;
}

type NextValues = SearchValues & { readonly after: Candidate };

/** What holds for the rows of a range behind a candidate. */
function behind({ columns }: QueueSql, { hasDue }: Range): Sql<NextValues> {
  const { id, retryAfter } = columns;
  const last = ({ after }: NextValues) => after.due;
  const lastId = ({ after }: NextValues) => after.id;
  if (!hasDue) return sql`${id} > ${lastId}`;
  return columns.storage("retryAfter") === "text"
    ? sql`(julianday(${retryAfter!}), ${id}) > (julianday(${last}), ${lastId})`
    : sql`(${retryAfter!}, ${id}) > (${last}, ${lastId})`;
}
