import type { SearchPlan, SearchValues } from "../driver/dialect.ts";
import type { Statement } from "../driver/statement.ts";
import { headSearch } from "./head_search.ts";
import { nextPriority } from "./next_priority.ts";
import type { QueueSql } from "./queue_sql.ts";
import { orderOf, type Range, ranges } from "./ranges.ts";
import { type Sql, sql, where } from "../driver/sql.ts";

/**
 * Finds claimable rows and locks them. No row is locked that is not returned, provided that an index
 * serves each part and does not cover it: where one covers, MariaDB keeps a lock on the row behind
 * the range.
 *
 * @param selected the columns of `t` that are wanted
 */
export function search(
  queue: QueueSql,
  selected: string,
  fifo: boolean,
): SearchPlan<Statement<SearchValues>> {
  if (fifo) return { first: [], each: [headSearch(queue, selected)] };
  const { lockedUntil } = queue.columns;
  return {
    first: lockedUntil === undefined ? [] : [expired(queue, selected, lockedUntil)],
    each: ranges(queue).map((range) => free(queue, selected, range)),
    ...nextPriority(queue),
  };
}

/** Rows of one range that are not leased. */
function free(queue: QueueSql, selected: string, range: Range): Sql<SearchValues> {
  const { columns } = queue;
  return sql`SELECT ${selected} FROM ${columns.tableBy("free")} ${
    where(range.conditions)
  }ORDER BY ${orderOf(range, queue)} LIMIT ${limit} FOR UPDATE SKIP LOCKED`;
}

/**
 * Rows whose lease has ended, which were due when they were claimed. Those that ended together come
 * in the order of the index: any other would be sorted, with all rows of the range locked.
 */
function expired(queue: QueueSql, selected: string, lockedUntil: string): Sql<SearchValues> {
  const { columns, times } = queue;
  const order = columns.index("expired")?.order ?? [lockedUntil, columns.id];
  const conditions = [
    ...queue.rows(),
    sql<SearchValues>`t.${lockedUntil} <= ${times.now("lockedUntil")}`,
  ];
  return sql`SELECT ${selected} FROM ${columns.tableBy("expired")} ${where(conditions)}ORDER BY ${
    order.map((column) => `t.${column}`).join(", ")
  } LIMIT ${limit} FOR UPDATE SKIP LOCKED`;
}

function limit({ limit }: SearchValues): bigint {
  return BigInt(limit);
}
