import type {
  QueueUse,
  RowAt,
  RowLockStatements,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import { guardKey } from "../driver/guard_key.ts";
import { rowLockWrites } from "../driver/session_writes.ts";
import { sql, where } from "../driver/sql.ts";
import { burial } from "./burial.ts";
import { Columns } from "./columns.ts";
import { QueueSql } from "./queue_sql.ts";
import { search } from "./search.ts";
import { sessionWrite } from "./session_write.ts";
import { tableKey } from "./table_key.ts";

/** The row lock form's statements for one queue. Rows are written by their id, while locked. */
export function rowLockStatements(
  table: TableDescription,
  facts: TableFacts,
  use: QueueUse,
): RowLockStatements {
  const columns = new Columns(table, facts);
  const { attempt } = columns;
  const queue = new QueueSql(columns, use);
  const byId = [sql<RowAt>`t.${columns.id} = ${({ id }) => id}`];
  return {
    find: search(queue, columns.delivered, table.fifo ?? false),
    ...guardKey(table, tableKey(table.table), use),
    lockAgain: sql`SELECT t.${columns.id} AS id FROM ${columns.table} AS t ${
      where<RowAt>([...byId, ...queue.rows(), ...queue.due()])
    }FOR UPDATE SKIP LOCKED`,
    ...rowLockWrites(
      table,
      (write) => sessionWrite(queue, write, byId),
      burial<RowAt>(queue, table, facts, use, byId).bury,
    ),
    read: (row) => ({
      id: columns.readId(row),
      attempt: attempt === undefined ? undefined : Math.max(1, Number(row.attempt ?? 1)),
      content: columns.readContent(row),
    }),
  };
}
