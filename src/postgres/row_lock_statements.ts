import type {
  QueueUse,
  RowAt,
  RowLockStatements,
  SearchValues,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import type { Statement } from "../driver/statement.ts";
import { Columns } from "./columns.ts";
import { guardKey } from "../driver/guard_key.ts";
import { QueueSql } from "./queue_sql.ts";
import { headSearch, search } from "./search.ts";
import { tableKey } from "./table_key.ts";

/** The row lock form's statements for one queue. */
export function rowLockStatements(
  table: TableDescription,
  facts: TableFacts,
  use: QueueUse,
): RowLockStatements {
  const columns = new Columns(table, facts);
  return {
    find: { first: [], each: [find(columns, use, table.fifo ?? false)] },
    ...guardKey(table, tableKey(table.table), use),
    remove: remove(columns, use),
    ...(columns.attempt === undefined ? {} : { spend: write(columns, use, () => []) }),
    ...delay(columns, use),
    ...bury(columns, use),
    read: (row) => ({
      id: columns.readId(row),
      attempt: columns.attempt === undefined ? undefined : Math.max(1, Number(row.attempt ?? 1)),
      payload: row.payload ?? null,
    }),
  };
}

/** One statement, which goes from priority to priority by itself. */
function find(columns: Columns, use: QueueUse, fifo: boolean): Statement<SearchValues> {
  const sql = new QueueSql<SearchValues>(columns, use);
  if (fifo) return sql.statement(headSearch(sql, columns.delivered));
  const limit = `${sql.parameters.add(({ limit }) => String(limit))}::text::bigint`;
  const { tables, select } = search(sql, columns.delivered, limit);
  return sql.statement(
    tables.length === 0 ? select : `WITH RECURSIVE ${tables.join(", ")} ${select}`,
  );
}

function remove(columns: Columns, use: QueueUse): Statement<RowAt> {
  const { processedAt, table } = columns;
  const sql = new QueueSql<RowAt>(columns, use);
  const verb = processedAt === undefined
    ? `DELETE FROM ${table} AS t`
    : `UPDATE ${table} AS t SET ${processedAt} = ${sql.times.now("processedAt")}`;
  return byId(sql, verb);
}

function delay(columns: Columns, use: QueueUse): Pick<RowLockStatements, "delay"> {
  const { retryAfter } = columns;
  if (retryAfter === undefined) return {};
  return {
    delay: write<RowAt & { readonly delay: number }>(columns, use, ({ times }) => [
      `${retryAfter} = ${times.after("retryAfter", ({ delay }) => delay)}`,
    ]),
  };
}

function bury(columns: Columns, use: QueueUse): Pick<RowLockStatements, "bury"> {
  const { group, retryAfter } = columns;
  if (group === undefined) return {};
  return {
    bury: write<RowAt & { readonly group: string }>(columns, use, (sql) => [
      `${group} = ${sql.value("group", ({ group }) => group)}`,
      ...(retryAfter === undefined ? [] : [`${retryAfter} = ${sql.times.now("retryAfter")}`]),
    ]),
  };
}

/** Counts an attempt, where there are any, and sets what else is to be set. */
function write<Values extends RowAt>(
  columns: Columns,
  use: QueueUse,
  set: (sql: QueueSql<Values>) => readonly string[],
): Statement<Values> {
  const sql = new QueueSql<Values>(columns, use);
  const all = [...set(sql), ...columns.countAttempt];
  return byId(sql, `UPDATE ${columns.table} AS t SET ${all.join(", ")}`);
}

function byId<Values extends RowAt>(sql: QueueSql<Values>, verb: string): Statement<Values> {
  const { id } = sql.columns;
  const isIt = `t.${id} = ${sql.value("id", ({ id }) => id)}`;
  return sql.statement(`${verb} WHERE ${isIt} RETURNING t.${id}::text AS id`);
}
