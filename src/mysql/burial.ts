import {
  type Burial,
  type Failure,
  type MessageId,
  nextSecond,
  type QueueUse,
  type RowAt,
  type TableDescription,
  type TableFacts,
} from "../driver/dialect.ts";
import { type BurialColumn, burialColumns } from "../driver/burial_columns.ts";
import { join, type Sql, sql, type SqlPart, where } from "../driver/sql.ts";
import { Columns } from "./columns.ts";
import { quote } from "./quote.ts";
import type { QueueSql } from "./queue_sql.ts";
import { failure } from "./session_write.ts";
import { Times } from "./times.ts";

/** What a row is moved with. */
type BurialValues<At> = At & Failure & { readonly newId?: MessageId };

/**
 * Moves a row to the dead letter; nothing where there is none. To another table it goes in steps:
 * `INSERT … SELECT` at READ COMMITTED does not lock the row that it copies, so that is done first.
 *
 * @param guard what holds for the row while it is the caller's
 */
export function burial<At extends RowAt>(
  queue: QueueSql,
  table: TableDescription,
  facts: TableFacts,
  use: QueueUse,
  guard: readonly SqlPart<At>[],
): { readonly bury?: Burial<At> } {
  const { deadLetter } = use;
  if (deadLetter === undefined) return {};
  const { columns } = queue;
  const own = where<BurialValues<At>>(guard);
  if (deadLetter.table === undefined) {
    const set = join(regrouped<At>(queue, deadLetter.group ?? ""), ", ");
    return { bury: [sql`UPDATE ${columns.table} AS t SET ${set} ${own}`] };
  }
  const target = { table: deadLetter.table, facts: deadLetter.facts! };
  const into = new Columns(target.table, target.facts);
  const copied = burialColumns(table, facts, target);
  const names = copied.map(({ column }) => quote(column)).join(", ");
  const values = join(copied.map((column) => valueOf<At>(columns, into, column, use)), ", ");
  return {
    bury: [
      sql`SELECT t.${columns.id} AS id FROM ${columns.table} AS t ${own}FOR UPDATE`,
      sql`INSERT INTO ${into.table} (${names}) SELECT ${values} FROM ${columns.table} AS t ${
        join([own, unlessThere<At>(into, copied, use)], "")
      }`,
      sql`${takeOut<At>(queue)} ${own}`,
    ],
  };
}

/** A row of this table begins anew in its new group. A later claim must write another token. */
function regrouped<At extends RowAt>(
  { columns, times }: QueueSql,
  group: string,
): readonly SqlPart<BurialValues<At>>[] {
  const { attempt, lockedUntil, retryAfter, uniqueKey } = columns;
  const until = times.known<RowAt>("lockedUntil", ({ now }) => nextSecond(now));
  return [
    sql`t.${columns.group!} = ${() => group}`,
    ...(attempt === undefined ? [] : [`t.${attempt} = 1`]),
    ...(lockedUntil === undefined ? [] : [sql<BurialValues<At>>`t.${lockedUntil} = ${until}`]),
    ...(retryAfter === undefined
      ? []
      : [sql<BurialValues<At>>`t.${retryAfter} = ${times.present("retryAfter")}`]),
    ...(uniqueKey === undefined ? [] : [`t.${uniqueKey} = NULL`]),
    ...failure<BurialValues<At>>(columns),
  ];
}

function takeOut<At extends RowAt>({ columns, times }: QueueSql): Sql<BurialValues<At>> {
  const { processedAt, table } = columns;
  return processedAt === undefined
    ? sql`DELETE t FROM ${table} AS t`
    : sql<BurialValues<At>>`UPDATE ${table} AS t SET t.${processedAt} = ${
      times.present("processedAt")
    }`;
}

/** A message that is there already under the same unique key counts as moved. */
function unlessThere<At>(
  into: Columns,
  copied: readonly BurialColumn[],
  { deadLetter }: QueueUse,
): Sql<BurialValues<At>> {
  const key = copied.find(({ role }) => role === "uniqueKey")?.from;
  if (into.uniqueKey === undefined || key === undefined || !("column" in key)) return join([], "");
  const sameGroup = into.group === undefined
    ? []
    : [sql`d.${into.group} = ${() => deadLetter?.group ?? ""}`];
  const there = join([...sameGroup, `d.${into.uniqueKey} = t.${quote(key.column)}`], " AND ");
  return sql`AND NOT EXISTS (SELECT 1 FROM ${into.table} AS d WHERE ${there})`;
}

function valueOf<At extends RowAt>(
  columns: Columns,
  into: Columns,
  { from }: BurialColumn,
  { clock, deadLetter }: QueueUse,
): SqlPart<BurialValues<At>> {
  if ("column" in from) return `t.${quote(from.column)}`;
  switch (from.role) {
    case "id":
      return ({ newId }) => newId ?? null;
    case "attempt":
      return "1";
    case "group":
      return () => deadLetter?.group ?? "";
    case "retryAfter":
      return new Times(into, clock).present("retryAfter");
    case "lastError": {
      const error = ({ error }: Failure) => into.encodeError(error);
      const { lastError } = columns;
      if (lastError === undefined) return error;
      return sql<BurialValues<At>>`COALESCE(${error}, t.${lastError})`;
    }
  }
}
