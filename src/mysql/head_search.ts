import type { SearchValues } from "../driver/dialect.ts";
import type { QueueSql } from "./queue_sql.ts";
import { type Sql, sql, where } from "../driver/sql.ts";
import type { Now } from "./times.ts";

/**
 * Finds the head of a FIFO queue, if it may be claimed: the first of all rows that are not done,
 * whether due, leased or locked, while no other row is leased. The lock of the queue's `guardKey` was
 * taken before, so nobody else claims meanwhile.
 *
 * The head is looked for without locks, and locked by its id once it is known to be claimable: so
 * nothing else is, and no head that is not. What may have changed in between is asked again. Each
 * LIMIT keeps a server from merging a step with the next, STRAIGHT_JOIN from taking them in another
 * order, and FORCE INDEX from reading all of a small table.
 */
export function headSearch(queue: QueueSql, selected: string): Sql<SearchValues> {
  const { columns } = queue;
  const conditions = [...queue.rows(), ...claimable(queue, "t")];
  return sql`SELECT ${selected} FROM (${claimableHead(queue)}) AS head STRAIGHT_JOIN ${
    columns.tableBy("row")
  } ON t.${columns.id} = head.${columns.id} ${where(conditions)}FOR UPDATE SKIP LOCKED`;
}

function claimableHead(queue: QueueSql): Sql<Now> {
  const { id } = queue.columns;
  const conditions = [...claimable(queue, "foremost"), ...noneLeased(queue)];
  return sql`SELECT foremost.${id} FROM (${foremost(queue)}) AS foremost ${
    where(conditions)
  }LIMIT 1`;
}

function foremost(queue: QueueSql): Sql {
  const { columns } = queue;
  const { id, priority, retryAfter, lockedUntil } = columns;
  const all = (...names: (string | undefined)[]): string =>
    names.filter((name) => name !== undefined).map((name) => `h.${name}`).join(", ");
  return sql`SELECT ${all(id, retryAfter, lockedUntil)} FROM ${columns.tableBy("first", "h")} ${
    where(queue.rows("h"))
  }ORDER BY ${all(priority, id)} LIMIT 1`;
}

function claimable(queue: QueueSql, row: string): readonly Sql<Now>[] {
  return [...queue.due(row), ...queue.unleased(row)];
}

function noneLeased(queue: QueueSql): readonly Sql<Now>[] {
  const { columns, times } = queue;
  const { lockedUntil } = columns;
  if (lockedUntil === undefined) return [];
  const leased = sql<Now>`l.${lockedUntil} > ${times.now("lockedUntil")}`;
  return [
    sql`NOT EXISTS (SELECT 1 FROM ${columns.tableBy("expired", "l")} ${
      where([...queue.rows("l"), leased])
    })`,
  ];
}
