import type {
  Candidate,
  CandidatePart,
  QueueUse,
  SearchPlan,
  SearchValues,
} from "../driver/dialect.ts";
import type { Statement } from "../driver/statement.ts";
import type { Columns } from "./columns.ts";
import { QueueSql, where } from "./queue_sql.ts";
import { free, type Range, ranges } from "./ranges.ts";

type NextValues = SearchValues & { readonly after: Candidate };

/**
 * Finds rows that may be claimed once the lock of their key is taken, page by page. Which locks are
 * held is asked above the page, and so only of its rows.
 */
export function candidates(
  columns: Columns,
  use: QueueUse,
  key: string,
): SearchPlan<CandidatePart> {
  // How many ranges there are does not depend on the statement that is written.
  const count = ranges(new QueueSql<SearchValues>(columns, use), "").length;
  const parts = Array.from({ length: count }, (_, index): CandidatePart => ({
    first: firstPage(columns, use, key, index),
    next: nextPage(columns, use, key, index),
  }));
  return { first: [], each: parts, ...nextPriority(columns, use) };
}

function firstPage(
  columns: Columns,
  use: QueueUse,
  key: string,
  index: number,
): Statement<SearchValues> {
  const sql = new QueueSql<SearchValues>(columns, use);
  const range = rangeOf(sql, index);
  return page(sql, key, range, range.conditions);
}

function nextPage(
  columns: Columns,
  use: QueueUse,
  key: string,
  index: number,
): Statement<NextValues> {
  const sql = new QueueSql<NextValues>(columns, use);
  const range = rangeOf(sql, index);
  return page(sql, key, range, [...range.conditions, behind(sql, range)]);
}

function rangeOf<Values extends SearchValues>(sql: QueueSql<Values>, index: number): Range {
  const { priority } = sql.columns;
  const wanted = priority === undefined ? "" : sql.value("priority", ({ priority }) => priority);
  return ranges(sql, wanted)[index]!;
}

function page<Values extends SearchValues>(
  sql: QueueSql<Values>,
  key: string,
  { hasDue, order }: Range,
  conditions: readonly string[],
): Statement<Values> {
  const { id, retryAfter, table } = sql.columns;
  const due = hasDue ? `t.${retryAfter}::text` : "NULL::text";
  const limit = `${sql.parameters.add(({ limit }) => String(limit))}::text::bigint`;
  return sql.statement(`WITH page AS MATERIALIZED (
  SELECT t.${id}::text AS id, ${key} AS lock_key, ${due} AS due,
    row_number() OVER (ORDER BY ${order.join(", ")}) AS position
  FROM ${table} AS t ${where(conditions)}
  ORDER BY ${order.join(", ")} LIMIT ${limit}
), held AS MATERIALIZED (
  SELECT (classid::bigint << 32) | objid::bigint AS hash FROM pg_catalog.pg_locks
  WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
)
SELECT page.id, page.lock_key, page.due,
  (hashtextextended(page.lock_key, 0) IN (SELECT hash FROM held))::int AS held
FROM page ORDER BY page.position`);
}

/** What holds for the rows of a range behind a candidate. */
function behind(sql: QueueSql<NextValues>, { hasDue }: Range): string {
  const { id, retryAfter } = sql.columns;
  const lastId = sql.value("id", ({ after }) => after.id);
  if (!hasDue) return `t.${id} > ${lastId}`;
  const last = sql.value("retryAfter", ({ after }) => String(after.due));
  return `(t.${retryAfter}, t.${id}) > (${last}, ${lastId})`;
}

function nextPriority(
  columns: Columns,
  use: QueueUse,
): Pick<SearchPlan<never>, "nextPriority"> {
  const { priority, table } = columns;
  if (priority === undefined) return {};
  const sql = new QueueSql<{ readonly atLeast: bigint; readonly now: number }>(columns, use);
  // Below what the column can hold is below all of it.
  const lowest = { smallint: -(2n ** 15n), integer: -(2n ** 31n) }[columns.type("priority")];
  const atLeast = sql.value(
    "priority",
    ({ atLeast }) => lowest !== undefined && atLeast < lowest ? lowest : atLeast,
  );
  return {
    nextPriority: sql.statement(
      `SELECT t.${priority}::text AS priority FROM ${table} AS t ` +
        where([...free(sql), `t.${priority} >= ${atLeast}`]) +
        `ORDER BY t.${priority} LIMIT 1`,
    ) as SearchPlan<never>["nextPriority"],
  };
}
