import { priorities } from "./priorities.ts";
import type { QueueSql } from "./queue_sql.ts";
import { where } from "./queue_sql.ts";
import { type Range, ranges } from "./ranges.ts";

/** A search as SQL. */
export interface Search {
  /** What `WITH RECURSIVE` has to define for it. */
  readonly tables: readonly string[];
  /** The SELECT. It locks what it returns, and nothing else, and returns it in claim order. */
  readonly select: string;
}

/**
 * Finds claimable rows that are not leased. It goes from priority to priority by the index, and
 * through the ranges of each, for as long as rows are wanted: an outer LIMIT stops it in the middle of
 * a range, before the next row is locked. The LIMIT of each range is for the planner, which would read
 * and sort all of a range that seems to be wanted whole.
 *
 * @param selected the columns of `t` that are wanted
 * @param limit how many rows are wanted at the most, as the planner can know it
 * @param wanted how many rows are wanted in the end
 */
export function search<Values extends { readonly now: number }>(
  sql: QueueSql<Values>,
  selected: string,
  limit: string,
  wanted: string = limit,
): Search {
  const prioritized = sql.columns.priority !== undefined;
  const parts = ranges(sql, "p.priority").map((range) => locked(sql, selected, range, limit));
  const all = `(\n    ${parts.join("\n    UNION ALL\n    ")}\n  ) AS found`;
  const from = prioritized ? `priorities AS p CROSS JOIN LATERAL ${all}` : all;
  const isThere = prioritized ? "WHERE p.priority IS NOT NULL " : "";
  return {
    tables: prioritized ? [priorities(sql)] : [],
    select: `SELECT found.* FROM ${from} ${isThere}LIMIT ${wanted}`,
  };
}

function locked<Values extends { readonly now: number }>(
  { columns: { table } }: QueueSql<Values>,
  selected: string,
  { conditions, order }: Range,
  limit: string,
): string {
  return `SELECT * FROM (SELECT ${selected} FROM ${table} AS t ${where(conditions)}` +
    `ORDER BY ${order.join(", ")} LIMIT ${limit} FOR UPDATE SKIP LOCKED) AS part`;
}

/**
 * Finds the head of a FIFO queue, if it may be claimed: the first of all rows that are not done,
 * whether due, leased or locked, and no other row is leased. The lock of the queue's `guardKey` has
 * been taken by an earlier statement, so this one sees all that others have done under it.
 */
export function headSearch<Values extends { readonly now: number }>(
  sql: QueueSql<Values>,
  selected: string,
): string {
  const { columns: { id, lockedUntil, priority, table }, rows, due, times } = sql;
  const order = [priority, id].filter((column) => column !== undefined);
  const head = `SELECT t.${id} FROM ${table} AS t ${where(rows)}` +
    `ORDER BY ${order.map((column) => `t.${column}`).join(", ")} LIMIT 1`;
  const conditions = [`t.${id} = (${head})`, ...rows, ...due];
  if (lockedUntil !== undefined) {
    const now = times.now("lockedUntil");
    const last = `SELECT max(t.${lockedUntil}) FROM ${table} AS t ${where(rows)}`;
    conditions.push(
      `(t.${lockedUntil} IS NULL OR t.${lockedUntil} <= ${now})`,
      `coalesce((${last}) <= ${now}, true)`,
    );
  }
  return `SELECT ${selected} FROM ${table} AS t ${where(conditions)}FOR UPDATE SKIP LOCKED`;
}
