import {
  type Burial,
  type Failure,
  type MessageId,
  nextSecond,
  type QueueUse,
  type RowAt,
  type TableDescription,
} from "../driver/dialect.ts";
import { type BurialColumn, burialColumns } from "../driver/burial_columns.ts";
import { uniqueColumns } from "../driver/roles.ts";
import { join, type Sql, sql, type SqlPart } from "../driver/sql.ts";
import { Columns, type SqliteFacts } from "./columns.ts";
import { quote } from "./quote.ts";
import { type QueueSql, where } from "./queue_sql.ts";
import { failure } from "./session_write.ts";

/** What a row is moved with. */
type BurialValues<At> = At & Failure & { readonly newId?: MessageId };

/**
 * Moves a row to the dead letter; nothing where there is none.
 *
 * @param guard what holds for the row while it is the caller's
 */
export function burial<At extends RowAt>(
  queue: QueueSql,
  table: TableDescription,
  facts: SqliteFacts,
  { deadLetter }: QueueUse,
  guard: readonly Sql<At>[],
): { readonly bury?: Burial<At> } {
  if (deadLetter === undefined) return {};
  const { columns } = queue;
  const { id } = columns;
  const own = where<BurialValues<At>>(...guard);
  if (deadLetter.table === undefined) {
    const set = join(regrouped<At>(columns, deadLetter.group ?? ""), ", ");
    return { bury: [sql`UPDATE ${columns.table} SET ${set} ${own}RETURNING ${id} AS id`] };
  }
  const target = { table: deadLetter.table, facts: deadLetter.facts! };
  const into = new Columns(target.table, target.facts);
  const copied = burialColumns(table, facts, target);
  const names = copied.map(({ column }) => quote(column)).join(", ");
  const values = copied.map((column) => valueOf<At>(columns, into, column, deadLetter.group ?? ""));
  return {
    bury: [
      sql`SELECT ${id} AS id FROM ${columns.table} ${own}`,
      sql`INSERT INTO ${into.table} (${names}) SELECT ${
        join(values, ", ")
      } FROM ${columns.table} ${own}${unlessThere(target.table)}`,
      sql`${takeOut<At>(columns)} ${own}`,
    ],
  };
}

/** A message that is there already under the same unique key counts as moved. */
function unlessThere(target: TableDescription): string {
  const unique = uniqueColumns(target).map(quote).join(", ");
  return unique === "" ? "" : `ON CONFLICT (${unique}) DO NOTHING`;
}

/** A row of this table begins anew in its new group. A later claim must write another token. */
function regrouped<At extends RowAt>(
  columns: Columns,
  group: string,
): readonly SqlPart<BurialValues<At>>[] {
  const { attempt, lockedUntil, retryAfter, uniqueKey } = columns;
  const until = ({ now }: RowAt) => columns.encodeTime("lockedUntil", nextSecond(now));
  const due = ({ now }: RowAt) => columns.encodeTime("retryAfter", now);
  return [
    sql`${columns.group!} = ${() => group}`,
    ...(attempt === undefined ? [] : [`${attempt} = 1`]),
    ...(lockedUntil === undefined ? [] : [sql<BurialValues<At>>`${lockedUntil} = ${until}`]),
    ...(retryAfter === undefined ? [] : [sql<BurialValues<At>>`${retryAfter} = ${due}`]),
    ...(uniqueKey === undefined ? [] : [`${uniqueKey} = NULL`]),
    ...failure(columns),
  ];
}

function takeOut<At extends RowAt>(columns: Columns): Sql<BurialValues<At>> {
  const { processedAt, table } = columns;
  if (processedAt === undefined) return sql`DELETE FROM ${table}`;
  const done = ({ now }: RowAt) => columns.encodeTime("processedAt", now);
  return sql<BurialValues<At>>`UPDATE ${table} SET ${processedAt} = ${done}`;
}

function valueOf<At extends RowAt>(
  columns: Columns,
  into: Columns,
  { from }: BurialColumn,
  group: string,
): SqlPart<BurialValues<At>> {
  if ("column" in from) return quote(from.column);
  switch (from.role) {
    case "id":
      return ({ newId }) => newId ?? null;
    case "attempt":
      return "1";
    case "group":
      return () => group;
    case "retryAfter":
      return ({ now }) => into.encodeTime("retryAfter", now);
    case "lastError": {
      const error = ({ error }: Failure) => into.encodeError(error);
      const { lastError } = columns;
      if (lastError === undefined) return error;
      return sql<BurialValues<At>>`coalesce(${error}, ${lastError})`;
    }
  }
}
