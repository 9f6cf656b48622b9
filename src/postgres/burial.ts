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
import { uniqueColumns } from "../driver/roles.ts";
import { Columns } from "./columns.ts";
import { quote } from "./quote.ts";
import { QueueSql } from "./queue_sql.ts";
import { Times } from "./times.ts";

/** What a row is moved with. */
type BurialValues<At> = At & Failure & { readonly newId?: MessageId };

/**
 * Moves a row to the dead letter in one statement; nothing where there is none.
 *
 * @param guard what holds for the row while it is the caller's
 */
export function burial<At extends RowAt>(
  columns: Columns,
  table: TableDescription,
  facts: TableFacts,
  use: QueueUse,
  guard: (sql: QueueSql<BurialValues<At>>) => readonly string[],
): { readonly bury?: Burial<At> } {
  const { deadLetter } = use;
  if (deadLetter === undefined) return {};
  const sql = new QueueSql<BurialValues<At>>(columns, use);
  if (deadLetter.table === undefined) {
    const set = regrouped(sql, table, deadLetter.group ?? "");
    const text = `UPDATE ${columns.table} AS t SET ${set.join(", ")} ` +
      `WHERE ${guard(sql).join(" AND ")} RETURNING t.${columns.id}::text AS id`;
    return { bury: [sql.statement(text)] };
  }
  const target = { table: deadLetter.table, facts: deadLetter.facts! };
  const into = new Columns(target.table, target.facts);
  const copied = burialColumns(table, facts, target);
  const values = copied.map((column) => valueOf(sql, into, column, facts, target.facts, use));
  const text = `WITH gone AS (
  ${takeOut(sql)} WHERE ${guard(sql).join(" AND ")} RETURNING t.*
), moved AS (
  INSERT INTO ${into.table} (${copied.map(({ column }) => quote(column)).join(", ")})
  SELECT ${values.join(", ")} FROM gone AS t
  ${unlessThere(target.table)}RETURNING 1
)
SELECT t.${columns.id}::text AS id, (SELECT count(*) FROM moved)::int AS moved FROM gone AS t`;
  return { bury: [sql.statement(text)] };
}

/** A message that is there already under the same unique key counts as moved. */
function unlessThere(target: TableDescription): string {
  const unique = uniqueColumns(target).map(quote).join(", ");
  return unique === "" ? "" : `ON CONFLICT (${unique}) DO NOTHING `;
}

/** A row of this table begins anew in its new group. A later claim must write another token. */
function regrouped<At extends RowAt>(
  sql: QueueSql<BurialValues<At>>,
  { attempt }: TableDescription,
  group: string,
): readonly string[] {
  const { columns, times } = sql;
  const { lockedUntil, retryAfter, uniqueKey } = columns;
  return [
    `${columns.group} = ${sql.value("group", () => group)}`,
    ...(attempt === undefined ? [] : [`${columns.attempt} = 1`]),
    ...(lockedUntil === undefined
      ? []
      : [`${lockedUntil} = ${times.at("lockedUntil", ({ now }) => nextSecond(now))}`]),
    ...(retryAfter === undefined ? [] : [`${retryAfter} = ${times.now("retryAfter")}`]),
    ...(uniqueKey === undefined ? [] : [`${uniqueKey} = NULL`]),
    ...sql.failure,
  ];
}

function takeOut<At extends RowAt>({ columns, times }: QueueSql<BurialValues<At>>): string {
  const { processedAt, table } = columns;
  return processedAt === undefined
    ? `DELETE FROM ${table} AS t`
    : `UPDATE ${table} AS t SET ${processedAt} = ${times.now("processedAt")}`;
}

/** The value of a column of the other table, of its type. */
function valueOf<At extends RowAt>(
  sql: QueueSql<BurialValues<At>>,
  into: Columns,
  { column, from }: BurialColumn,
  facts: TableFacts,
  targetFacts: TableFacts,
  use: QueueUse,
): string {
  const type = targetFacts.columns.get(column) ?? "text";
  if ("column" in from) {
    const value = `t.${quote(from.column)}`;
    return facts.columns.get(from.column) === type ? value : `${value}::text::${type}`;
  }
  switch (from.role) {
    case "id":
      return into.cast("id", sql.parameters.add(({ newId }) => String(newId)));
    case "attempt":
      return "1";
    case "group":
      return into.cast("group", sql.parameters.add(() => use.deadLetter?.group ?? ""));
    case "retryAfter":
      return new Times(into, use.clock, sql.parameters).now("retryAfter");
    case "lastError": {
      const error = into.cast(
        "lastError",
        sql.parameters.add(({ error }) => into.encodeError(error)),
      );
      const { lastError } = sql.columns;
      return lastError === undefined ? error : `coalesce(${error}, t.${lastError}::text::${type})`;
    }
  }
}
