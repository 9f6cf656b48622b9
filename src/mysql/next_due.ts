import type { NextDueStatement, QueueUse, TableDescription } from "../driver/dialect.ts";
import type { TimeRole } from "../driver/roles.ts";
import { readNextDue, selectNextDue } from "../driver/select_next_due.ts";
import { type Sql, sql, where } from "../driver/sql.ts";
import type { ClaimRange } from "./claim_indexes.ts";
import { Columns } from "./columns.ts";
import { QueueSql } from "./queue_sql.ts";
import type { MysqlFacts } from "./table_facts.ts";
import type { Now } from "./times.ts";

/** Tells when a queue's next row becomes due. Reads without locks. */
export function nextDue(
  table: TableDescription,
  facts: MysqlFacts,
  use: QueueUse,
): NextDueStatement {
  const queue = new QueueSql(new Columns(table, facts), use);
  const isFifo = table.fifo ?? false;
  const statement = selectNextDue({
    dueIn: [...leaseEnds(queue), ...comesFree(queue, isFifo), ...comesAfterLease(queue)],
    waiting: [...isFree(queue, isFifo), ...isExpired(queue)],
  });
  return { statement, read: readNextDue };
}

/** Rows that a lease holds. */
function leaseEnds(queue: QueueSql): readonly Sql<Now>[] {
  const { lockedUntil } = queue.columns;
  if (lockedUntil === undefined) return [];
  const conditions = [...queue.rows(), compare(queue, "lockedUntil", ">")];
  const least = sql<Now>`SELECT MIN(t.${lockedUntil}) ${from(queue, "expired", conditions)}`;
  return [timeUntil(queue, "lockedUntil", least)];
}

/** Rows that no lease has held, and that are not due yet. */
function comesFree(queue: QueueSql, isFifo: boolean): readonly Sql<Now>[] {
  const { priority, retryAfter } = queue.columns;
  if (retryAfter === undefined) return [];
  const conditions = [...queue.free(), compare(queue, "retryAfter", ">")];
  const least = isFifo || priority === undefined
    ? sql<Now>`SELECT MIN(t.${retryAfter}) ${from(queue, freeRange(isFifo), conditions)}`
    : sql<Now>`SELECT MIN(least) FROM (${ofEachPriority(queue, conditions)}) AS found`;
  return [timeUntil(queue, "retryAfter", least)];
}

/** Rows whose lease has ended, and that are not due yet. */
function comesAfterLease(queue: QueueSql): readonly Sql<Now>[] {
  const { lockedUntil, retryAfter } = queue.columns;
  if (lockedUntil === undefined || retryAfter === undefined) return [];
  const conditions = [
    ...queue.rows(),
    compare(queue, "lockedUntil", "<="),
    compare(queue, "retryAfter", ">"),
  ];
  const least = sql<Now>`SELECT MIN(t.${retryAfter}) ${from(queue, "expired", conditions)}`;
  return [timeUntil(queue, "retryAfter", least)];
}

/** Rows that no lease has held, and that are due. */
function isFree(queue: QueueSql, isFifo: boolean): readonly Sql<Now>[] {
  const { priority, retryAfter, dueMayBeNull } = queue.columns;
  if (retryAfter === undefined || isFifo || priority === undefined) {
    const conditions = [...queue.free(), ...queue.due()];
    return [sql`SELECT 1 ${from(queue, freeRange(isFifo), conditions)}LIMIT 1`];
  }
  const isThere = (condition: Sql<Now>): Sql<Now> =>
    sql`SELECT 1 FROM (${ofEachPriority(queue, [...queue.free(), condition])}) AS found LIMIT 1`;
  const due = isThere(compare(queue, "retryAfter", "<="));
  return dueMayBeNull ? [due, isThere(sql`t.${retryAfter} IS NULL`)] : [due];
}

/** Rows whose lease has ended, and that are due. */
function isExpired(queue: QueueSql): readonly Sql<Now>[] {
  if (queue.columns.lockedUntil === undefined) return [];
  const conditions = [...queue.rows(), compare(queue, "lockedUntil", "<="), ...queue.due()];
  return [sql`SELECT 1 ${from(queue, "expired", conditions)}LIMIT 1`];
}

function freeRange(isFifo: boolean): ClaimRange {
  return isFifo ? "first" : "free";
}

/**
 * The least due time of each priority that has such rows. Grouped by all that the index has before
 * the due time, in its order, both servers skip in it from one priority to the next.
 */
function ofEachPriority(queue: QueueSql, conditions: readonly Sql<Now>[]): Sql<Now> {
  const { group, processedAt, lockedUntil, priority, retryAfter } = queue.columns;
  const before = [group, processedAt, lockedUntil, priority]
    .filter((column) => column !== undefined).map((column) => `t.${column}`).join(", ");
  return sql`SELECT MIN(t.${retryAfter!}) AS least ${
    from(queue, "free", conditions)
  }GROUP BY ${before}`;
}

function from(queue: QueueSql, range: ClaimRange, conditions: readonly Sql<Now>[]): Sql<Now> {
  return sql`FROM ${queue.columns.tableBy(range)} ${where(conditions)}`;
}

/** For rows whose time of a role has come, or comes. */
function compare(queue: QueueSql, role: TimeRole, operator: "<=" | ">"): Sql<Now> {
  return sql`t.${queue.columns[role]!} ${operator} ${queue.times.latest(role)}`;
}

/** What a time of a role is ahead of the present, in milliseconds. */
function timeUntil(queue: QueueSql, role: TimeRole, time: Sql<Now>): Sql<Now> {
  const now = queue.times.now(role);
  return queue.columns.countsMilliseconds(role)
    ? sql`(${time}) - ${now}`
    : sql`CEILING(TIMESTAMPDIFF(MICROSECOND, ${now}, (${time})) / 1000)`;
}
