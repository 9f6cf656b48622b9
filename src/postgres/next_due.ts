import type { NextDueStatement, QueueUse, TableDescription } from "../driver/dialect.ts";
import type { TimeRole } from "../driver/roles.ts";
import { readNextDue, selectNextDue } from "../driver/select_next_due.ts";
import { Columns } from "./columns.ts";
import { priorities } from "./priorities.ts";
import { QueueSql, where } from "./queue_sql.ts";
import { free } from "./ranges.ts";
import type { PostgresFacts } from "./table_facts.ts";

/** Tells when a queue's next row becomes due. */
export function nextDue(
  table: TableDescription,
  facts: PostgresFacts,
  use: QueueUse,
): NextDueStatement {
  const sql: Queue = new QueueSql(new Columns(table, facts), use);
  const { priority, retryAfter, id } = sql.columns;
  // The index of a FIFO queue does not go on with the due time.
  const hasDueOrder = retryAfter !== undefined && !table.fifo;
  const hasPriorities = hasDueOrder && priority !== undefined;
  const order = hasDueOrder
    ? [retryAfter, id]
    : [priority, id].filter((name) => name !== undefined);
  const search: Search = hasPriorities
    ? (part) => ofEachPriority(first(sql, withCondition(part, `t.${priority} = p.priority`)))
    : (part) => first(sql, part);
  const select = selectNextDue({
    dueIn: [...leaseEnds(sql), ...comesFree(sql, search), ...comesAfterLease(sql)],
    waiting: [...isFree(sql, search, order), ...isExpired(sql)],
  });
  const tables = hasPriorities ? `WITH RECURSIVE ${priorities(sql)}\n` : "";
  return { statement: sql.statement(`${tables}${select.text}`), read: readNextDue };
}

type Queue = QueueSql<{ readonly now: number }>;

/** What is selected of the first row for which the conditions hold. */
interface First {
  readonly selected: string;
  readonly conditions: readonly string[];
  readonly order: readonly string[];
}

/** Selects of the first row that is not leased. */
type Search = (part: First) => string;

/** Rows that a lease holds. */
function leaseEnds(sql: Queue): readonly string[] {
  const { lockedUntil } = sql.columns;
  if (lockedUntil === undefined) return [];
  return [
    first(sql, {
      selected: timeUntil(sql, "lockedUntil"),
      conditions: [...sql.rows, ...isToCome(sql, "lockedUntil")],
      order: [lockedUntil],
    }),
  ];
}

/** Rows that no lease has held, and that are not due yet. */
function comesFree(sql: Queue, search: Search): readonly string[] {
  const { retryAfter } = sql.columns;
  if (retryAfter === undefined) return [];
  return [
    search({
      selected: timeUntil(sql, "retryAfter"),
      conditions: [...free(sql), ...isToCome(sql, "retryAfter")],
      order: [retryAfter],
    }),
  ];
}

/** Rows whose lease has ended, and that are not due yet. */
function comesAfterLease(sql: Queue): readonly string[] {
  const { lockedUntil, retryAfter } = sql.columns;
  if (lockedUntil === undefined || retryAfter === undefined) return [];
  return [
    first(sql, {
      selected: timeUntil(sql, "retryAfter"),
      conditions: [...sql.rows, hasCome(sql, "lockedUntil"), ...isToCome(sql, "retryAfter")],
      order: [retryAfter],
    }),
  ];
}

/** Rows that no lease has held, and that are due. */
function isFree(sql: Queue, search: Search, order: readonly string[]): readonly string[] {
  const { retryAfter, dueMayBeNull } = sql.columns;
  const isThere = (...more: readonly string[]): string =>
    search({ selected: "1", conditions: [...free(sql), ...more], order });
  if (retryAfter === undefined) return [isThere()];
  const due = isThere(hasCome(sql, "retryAfter"));
  return dueMayBeNull ? [due, isThere(`t.${retryAfter} IS NULL`)] : [due];
}

/** Rows whose lease has ended, and that are due. */
function isExpired(sql: Queue): readonly string[] {
  const { lockedUntil } = sql.columns;
  if (lockedUntil === undefined) return [];
  return [
    first(sql, {
      selected: "1",
      conditions: [...sql.rows, hasCome(sql, "lockedUntil"), ...sql.due],
      order: [lockedUntil],
    }),
  ];
}

/** In the order of an index: without one the planner may count on a row that is soon found, and read all. */
function first({ columns: { table } }: Queue, { selected, conditions, order }: First): string {
  return `SELECT ${selected} FROM ${table} AS t ${where(conditions)}` +
    `ORDER BY ${order.map((column) => `t.${column}`).join(", ")} LIMIT 1`;
}

function withCondition({ conditions, ...rest }: First, condition: string): First {
  return { ...rest, conditions: [...conditions, condition] };
}

/** What a time of a role is ahead of the present, in milliseconds. */
function timeUntil({ columns, times }: Queue, role: TimeRole): string {
  const time = `t.${columns[role]} - ${times.now(role)}`;
  if (columns.countsMilliseconds(role)) return time;
  // As a numeric it has lost what a double adds to it before Postgres 14.
  return `ceil((extract(epoch FROM ${time}) * 1000)::numeric)::bigint`;
}

/** For rows whose time of a role comes; infinity does not. */
function isToCome({ columns, times }: Queue, role: TimeRole): readonly string[] {
  const isAhead = `t.${columns[role]} > ${times.now(role)}`;
  return columns.countsMilliseconds(role)
    ? [isAhead]
    : [isAhead, `t.${columns[role]} < 'infinity'`];
}

function hasCome({ columns, times }: Queue, role: TimeRole): string {
  return `t.${columns[role]} <= ${times.now(role)}`;
}

function ofEachPriority(part: string): string {
  return `SELECT min(found) FROM (SELECT (${part}) AS found FROM priorities AS p) AS each_priority`;
}
