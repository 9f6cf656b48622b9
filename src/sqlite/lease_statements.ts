import {
  expiryOf,
  type FindThenTake,
  type LeaseStatements,
  type LeaseTimes,
  type MessageId,
  type QueueUse,
  type TableDescription,
} from "../driver/dialect.ts";
import { leaseWrites } from "../driver/lease_writes.ts";
import { join, type Sql, sql, type SqlPart } from "../driver/sql.ts";
import { Columns, readId, type SqliteFacts } from "./columns.ts";
import { burial } from "./burial.ts";
import { guardedWrite, guardOne } from "./guarded_write.ts";
import { QueueSql, where } from "./queue_sql.ts";
import { search } from "./search.ts";

/** The lease form's statements for one queue. */
export function leaseStatements(
  table: TableDescription,
  facts: SqliteFacts,
  use: QueueUse,
): SqliteLeaseStatements {
  const columns = new Columns(table, facts);
  const queue = new QueueSql(columns, use);
  return {
    claim: {
      kind: "find, then take",
      find: search(queue, table.fifo ?? false),
      take: take(columns),
    },
    ...leaseWrites(table, (write) => guardedWrite(queue, write)),
    ...burial(queue, table, facts, use, guardOne(queue)),
    look: look(queue),
    read: (row) => ({
      id: readId(row),
      attempt: columns.attempt === undefined ? undefined : Number(row.attempt),
      expiry: columns.readTime("lockedUntil", row.expiry),
      content: columns.readContent(row),
    }),
    readId,
  };
}

/** SQLite's claims search first, and take in the same transaction. */
export interface SqliteLeaseStatements extends LeaseStatements {
  readonly claim: FindThenTake;
}

type TakeValues = LeaseTimes & { readonly ids: readonly MessageId[] };

function take(columns: Columns): Sql<TakeValues> {
  const { id, table, lockedUntil } = columns;
  const until = (times: LeaseTimes) => columns.encodeTime("lockedUntil", expiryOf(times));
  const set: readonly SqlPart<TakeValues>[] = [
    sql`${lockedUntil!} = ${until}`,
    ...columns.countAttempt,
  ];
  const ids = ({ ids }: TakeValues) => jsonOf(ids);
  return sql`UPDATE ${table} SET ${
    join(set, ", ")
  } WHERE ${id} IN (SELECT value FROM json_each(${ids})) RETURNING ${columns.delivered}, ${lockedUntil!} AS expiry`;
}

/** A row that is done, or of another group, is not there any more. */
function look(queue: QueueSql): LeaseStatements["look"] {
  const { id, table } = queue.columns;
  const isIt = sql<{ readonly id: MessageId }>`${id} = ${({ id }) => id}`;
  return sql`SELECT ${id} AS id FROM ${table} ${where(isIt, ...queue.rows())}`;
}

/** Integers are written out: JSON in SQLite reads them exactly. */
function jsonOf(ids: readonly MessageId[]): string {
  return `[${ids.map((id) => typeof id === "bigint" ? `${id}` : JSON.stringify(id)).join(",")}]`;
}
