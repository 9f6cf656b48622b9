import type {
  LeaseStatements,
  MessageId,
  QueueUse,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import { leaseWrites } from "../driver/lease_writes.ts";
import { Columns } from "./columns.ts";
import { guardKey } from "../driver/guard_key.ts";
import { burial } from "./burial.ts";
import { guardedWrite, guardOne } from "./guarded_write.ts";
import { leaseClaim } from "./lease_claim.ts";
import { QueueSql } from "./queue_sql.ts";
import { sql, where } from "../driver/sql.ts";
import { tableKey } from "./table_key.ts";

/** The lease form's statements for one queue. */
export function leaseStatements(
  table: TableDescription,
  facts: TableFacts,
  use: QueueUse,
): LeaseStatements {
  const columns = new Columns(table, facts);
  const queue = new QueueSql(columns, use);
  return {
    claim: leaseClaim(columns, use, table.fifo ?? false),
    ...guardKey(table, tableKey(table.table), use),
    ...leaseWrites(table, (write) => guardedWrite(columns, use, write)),
    ...burial(queue, table, facts, use, guardOne(queue)),
    look: look(columns, use),
    read: (row) => ({
      id: columns.readId(row),
      attempt: columns.attempt === undefined ? undefined : Number(row.attempt),
      expiry: Number(row.expiry),
      now: row.now === undefined ? undefined : Number(row.now),
      content: columns.readContent(row),
    }),
    readId: (row) => columns.readId(row),
  };
}

/** A row that is done, or of another group, is not there any more. */
function look(columns: Columns, use: QueueUse): LeaseStatements["look"] {
  const byId = sql`t.${columns.id} = ${({ id }: { readonly id: MessageId }) => id}`;
  const conditions = [byId, ...new QueueSql(columns, use).rows()];
  return sql`SELECT t.${columns.id} AS id FROM ${columns.table} AS t ${where(conditions)}`;
}
