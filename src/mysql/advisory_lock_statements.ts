import type {
  AdvisoryLockStatements,
  LockedRowAt,
  QueueUse,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import { advisoryLockWrites } from "../driver/session_writes.ts";
import { burial } from "./burial.ts";
import { candidates } from "./candidates.ts";
import { Columns } from "./columns.ts";
import { lockKeySql } from "./lock_key_sql.ts";
import { QueueSql } from "./queue_sql.ts";
import { join, type Sql, sql, where } from "../driver/sql.ts";
import { sessionWrite } from "./session_write.ts";

/** The advisory lock form's statements for one queue. */
export function advisoryLockStatements(
  table: TableDescription,
  facts: TableFacts,
  use: QueueUse,
): AdvisoryLockStatements {
  const columns = new Columns(table, facts);
  const { attempt } = columns;
  const queue = new QueueSql(columns, use);
  const key = lockKeySql(table, facts);
  return {
    candidates: candidates(queue, key),
    take: take(queue, key),
    ...advisoryLockWrites<LockedRowAt>(
      table,
      (write) => sessionWrite(queue, write, held(queue)),
      burial<LockedRowAt>(queue, table, facts, use, held(queue)).bury,
    ),
    readCandidate: (row) => ({
      id: columns.readId(row),
      key: String(row.lock_key),
      due: row.due ?? null,
      held: Number(row.held) === 1,
    }),
    read: (row) => ({
      id: columns.readId(row),
      attempt: attempt === undefined ? undefined : Number(row.attempt) - 1,
      content: columns.readContent(row),
    }),
  };
}

type TakeValues = LockedRowAt & { readonly key: string };

/** The UPDATE locks the row, so that the row read after it is as it was counted. */
function take(queue: QueueSql, key: Sql): readonly Sql<TakeValues>[] {
  const { columns } = queue;
  const { id, table, delivered, countAttempt } = columns;
  // By bytes: no collation is to take two keys for one.
  const sameKey = sql`CAST(${key} AS BINARY) = CAST(${({ key }: TakeValues) => key} AS BINARY)`;
  const claimable = [...rowAt(queue), ...queue.rows(), ...queue.due(), sameKey];
  if (columns.attempt === undefined) {
    return [sql`SELECT ${delivered} FROM ${table} AS t ${where(claimable)}FOR UPDATE`];
  }
  return [
    sql`UPDATE ${table} AS t SET ${join(countAttempt, ", ")} ${where(claimable)}`,
    sql`SELECT ${delivered} FROM ${table} AS t WHERE t.${id} = ${byId}`,
  ];
}

/** What holds for the row while its holder has it: its attempt is counted, once and by nobody else. */
function held(queue: QueueSql): readonly Sql<LockedRowAt>[] {
  const { attempt } = queue.columns;
  const counted = ({ attempt }: LockedRowAt): bigint => BigInt(attempt ?? 0) + 1n;
  return [
    ...rowAt(queue),
    ...queue.inGroup(),
    ...(attempt === undefined ? [] : [sql`t.${attempt} = ${counted}`]),
  ];
}

/** The row, on the session that holds the lock. */
function rowAt({ columns: { id } }: QueueSql): readonly Sql<LockedRowAt>[] {
  return [
    sql`t.${id} = ${byId}`,
    sql`CONNECTION_ID() = ${({ holder }: LockedRowAt) => holder}`,
  ];
}

function byId({ id }: LockedRowAt) {
  return id;
}
