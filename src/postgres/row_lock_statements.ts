import type {
  QueueUse,
  RowAt,
  RowLockStatements,
  SearchValues,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import type { Statement } from "../driver/statement.ts";
import { rowLockWrites } from "../driver/session_writes.ts";
import { burial } from "./burial.ts";
import { Columns } from "./columns.ts";
import { guardKey } from "../driver/guard_key.ts";
import { QueueSql } from "./queue_sql.ts";
import { headSearch, search } from "./search.ts";
import { sessionWrite } from "./session_write.ts";
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
    lockAgain: lockAgain(columns, use),
    ...rowLockWrites(
      table,
      (write) => sessionWrite(columns, use, write, byId),
      burial<RowAt>(columns, table, facts, use, byId).bury,
    ),
    read: (row) => ({
      id: columns.readId(row),
      attempt: columns.attempt === undefined ? undefined : Math.max(1, Number(row.attempt ?? 1)),
      content: columns.readContent(row),
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

function lockAgain(columns: Columns, use: QueueUse): Statement<RowAt> {
  const sql = new QueueSql<RowAt>(columns, use);
  const claimable = [...byId(sql), ...sql.rows, ...sql.due];
  return sql.statement(
    `SELECT t.${columns.id}::text AS id FROM ${columns.table} AS t ` +
      `WHERE ${claimable.join(" AND ")} FOR UPDATE SKIP LOCKED`,
  );
}

function byId<Values extends RowAt>(sql: QueueSql<Values>): readonly string[] {
  return [`t.${sql.columns.id} = ${sql.value("id", ({ id }) => id)}`];
}
