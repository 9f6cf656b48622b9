import type {
  QueueUse,
  RowAt,
  RowLockStatements,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import type { Statement } from "../driver/statement.ts";
import { Columns } from "./columns.ts";
import { guardKey } from "../driver/guard_key.ts";
import { QueueSql } from "./queue_sql.ts";
import { search } from "./search.ts";
import { join, type Sql, sql, type SqlPart } from "../driver/sql.ts";
import { tableKey } from "./table_key.ts";

/** The row lock form's statements for one queue. Rows are written by their id, while locked. */
export function rowLockStatements(
  table: TableDescription,
  facts: TableFacts,
  use: QueueUse,
): RowLockStatements {
  const columns = new Columns(table, facts);
  const { attempt, countAttempt } = columns;
  const queue = new QueueSql(columns, use);
  return {
    find: search(queue, columns.delivered, table.fifo ?? false),
    ...guardKey(table, tableKey(table.table), use),
    remove: remove(queue),
    ...(attempt === undefined ? {} : { spend: update(columns, countAttempt) }),
    ...delay(queue),
    ...bury(queue),
    read: (row) => ({
      id: columns.readId(row),
      attempt: attempt === undefined ? undefined : Math.max(1, Number(row.attempt ?? 1)),
      payload: row.payload ?? null,
    }),
  };
}

function remove({ columns, times }: QueueSql): Statement<RowAt> {
  const { processedAt, table, id } = columns;
  return processedAt === undefined
    ? sql`DELETE t FROM ${table} AS t WHERE t.${id} = ${byId}`
    : update(columns, [sql`t.${processedAt} = ${times.present("processedAt")}`]);
}

function delay({ columns, times }: QueueSql): Pick<RowLockStatements, "delay"> {
  const { retryAfter, countAttempt } = columns;
  if (retryAfter === undefined) return {};
  type Values = RowAt & { readonly delay: number };
  const due = times.after("retryAfter", ({ delay }: Values) => delay);
  return { delay: update(columns, [sql<Values>`t.${retryAfter} = ${due}`, ...countAttempt]) };
}

function bury({ columns, times }: QueueSql): Pick<RowLockStatements, "bury"> {
  const { group, retryAfter, countAttempt } = columns;
  if (group === undefined) return {};
  type Values = RowAt & { readonly group: string };
  const set: SqlPart<Values>[] = [
    sql`t.${group} = ${({ group }: Values) => group}`,
    ...countAttempt,
  ];
  if (retryAfter !== undefined) set.push(sql`t.${retryAfter} = ${times.present("retryAfter")}`);
  return { bury: update(columns, set) };
}

function update<Values extends RowAt>(
  { table, id }: Columns,
  set: readonly SqlPart<Values>[],
): Sql<Values> {
  return sql`UPDATE ${table} AS t SET ${join(set, ", ")} WHERE t.${id} = ${byId}`;
}

function byId({ id }: RowAt) {
  return id;
}
