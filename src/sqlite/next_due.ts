import type { NextDueStatement, QueueUse, TableDescription } from "../driver/dialect.ts";
import type { TimeRole } from "../driver/roles.ts";
import { readNextDue, selectNextDue } from "../driver/select_next_due.ts";
import { type Sql, sql, type SqlPart } from "../driver/sql.ts";
import { Columns, type SqliteFacts } from "./columns.ts";
import { type Now, QueueSql, where } from "./queue_sql.ts";

/** Tells when a queue's next row becomes due. */
export function nextDue(
  table: TableDescription,
  facts: SqliteFacts,
  use: QueueUse,
): NextDueStatement {
  const queue = new QueueSql(new Columns(table, facts), use);
  const { priority, retryAfter } = queue.columns;
  // The index of a FIFO queue does not go on with the due time.
  const hasPriorities = priority !== undefined && retryAfter !== undefined && !table.fifo;
  const search: Search = hasPriorities
    ? (part, conditions) =>
      ofEachPriority(first(queue, part, [...conditions, ofPriority(priority)]))
    : (part, conditions) => first(queue, part, conditions);
  const select = selectNextDue({
    dueIn: [...leaseEnds(queue), ...comesFree(queue, search), ...comesAfterLease(queue)],
    waiting: [...isFree(queue, search), ...isExpired(queue)],
  });
  return {
    statement: hasPriorities ? sql`${priorities(queue, priority)} ${select}` : select,
    read: readNextDue,
  };
}

/** What is selected of the first row, in which order. */
interface First {
  readonly selected: SqlPart<Now>;
  readonly order?: string;
}

/** Selects of the first row that is not leased and meets the conditions. */
type Search = (first: First, conditions: readonly Sql<Now>[]) => Sql<Now>;

/** Rows that a lease holds. */
function leaseEnds(queue: QueueSql): readonly Sql<Now>[] {
  if (queue.columns.lockedUntil === undefined) return [];
  return [
    first(queue, timeUntil(queue, "lockedUntil"), [
      ...queue.rows(),
      ...isToCome(queue, "lockedUntil"),
    ]),
  ];
}

/** Rows that no lease has held, and that are not due yet. */
function comesFree(queue: QueueSql, search: Search): readonly Sql<Now>[] {
  if (queue.columns.retryAfter === undefined) return [];
  const conditions = [...queue.free(), ...isToCome(queue, "retryAfter")];
  return [search(timeUntil(queue, "retryAfter"), conditions)];
}

/** Rows whose lease has ended, and that are not due yet. */
function comesAfterLease(queue: QueueSql): readonly Sql<Now>[] {
  const { lockedUntil, retryAfter } = queue.columns;
  if (lockedUntil === undefined || retryAfter === undefined) return [];
  const conditions = [
    ...queue.rows(),
    queue.hasCome("lockedUntil"),
    ...isToCome(queue, "retryAfter"),
  ];
  return [first(queue, timeUntil(queue, "retryAfter"), conditions)];
}

/** Rows that no lease has held, and that are due. */
function isFree(queue: QueueSql, search: Search): readonly Sql<Now>[] {
  const { retryAfter, dueMayBeNull } = queue.columns;
  const isThere: First = { selected: "1" };
  if (retryAfter === undefined) return [search(isThere, queue.free())];
  const due = search(isThere, [...queue.free(), queue.hasCome("retryAfter")]);
  if (!dueMayBeNull) return [due];
  return [due, search(isThere, [...queue.free(), sql`${retryAfter} IS NULL`])];
}

/** Rows whose lease has ended, and that are due. */
function isExpired(queue: QueueSql): readonly Sql<Now>[] {
  if (queue.columns.lockedUntil === undefined) return [];
  const conditions = [...queue.rows(), queue.hasCome("lockedUntil"), ...queue.due()];
  return [first(queue, { selected: "1" }, conditions)];
}

function first(
  { columns, readable }: QueueSql,
  { selected, order }: First,
  conditions: readonly Sql<Now>[],
): Sql<Now> {
  const inOrder = order === undefined ? "" : `ORDER BY ${order} `;
  return sql`SELECT ${selected} FROM ${columns.table} AS t ${
    where(...conditions, readable)
  }${inOrder}LIMIT 1`;
}

/** What a time of a role is ahead of the present, in milliseconds. */
function timeUntil(queue: QueueSql, role: TimeRole): First {
  const column = queue.columns[role]!;
  const now = queue.now(role);
  const selected = queue.columns.storage(role) === "milliseconds"
    ? sql`${column} - ${now}`
    : sql`CAST(round((julianday(${column}) - julianday(${now})) * 86400000) AS INTEGER)`;
  return { selected, order: queue.order(role) };
}

/** For rows whose time of a role comes. What is no number, where numbers are kept, is above them all. */
function isToCome(queue: QueueSql, role: TimeRole): readonly Sql<Now>[] {
  return queue.columns.storage(role) === "milliseconds"
    ? [...queue.isAhead(role), sql`${queue.columns[role]!} < ''`]
    : queue.isAhead(role);
}

/** The index goes from priority to priority, and in each by due time. */
function priorities(queue: QueueSql, priority: string): Sql {
  const next = (...more: readonly string[]): Sql =>
    sql`(SELECT ${priority} FROM ${queue.columns.table} AS t ${
      where(...queue.free(), ...more, `typeof(${priority}) = 'integer'`)
    }ORDER BY ${priority} LIMIT 1)`;
  return sql`WITH RECURSIVE holdfast_priorities (priority) AS (SELECT ${next()} UNION ALL SELECT ${
    next(`${priority} > p.priority`)
  } FROM holdfast_priorities AS p WHERE p.priority IS NOT NULL)`;
}

function ofPriority(priority: string): Sql {
  return sql`${priority} = p.priority`;
}

function ofEachPriority(part: Sql<Now>): Sql<Now> {
  return sql`SELECT min(found) FROM (SELECT (${part}) AS found FROM holdfast_priorities AS p) AS each_priority`;
}
