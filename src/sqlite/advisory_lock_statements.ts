import type {
  AdvisoryLockStatements,
  LockedRowAt,
  QueueUse,
  TableDescription,
} from "../driver/dialect.ts";
import { advisoryLockWrites } from "../driver/session_writes.ts";
import { join, type Sql, sql } from "../driver/sql.ts";
import { burial } from "./burial.ts";
import { candidates } from "./candidates.ts";
import { Columns, readId, type SqliteFacts } from "./columns.ts";
import { lockKeySql } from "./lock_key_sql.ts";
import { QueueSql, where } from "./queue_sql.ts";
import { sessionWrite } from "./session_write.ts";

/**
 * The advisory lock form's statements for one queue. The lock is one of the process, which nothing
 * in the database can tell: so no statement asks for its holder.
 */
export function advisoryLockStatements(
  table: TableDescription,
  facts: SqliteFacts,
  use: QueueUse,
): AdvisoryLockStatements {
  const columns = new Columns(table, facts);
  const queue = new QueueSql(columns, use);
  const key = lockKeySql(table);
  const { attempt } = columns;
  return {
    candidates: candidates(queue, key),
    take: [take(queue, key)],
    ...advisoryLockWrites<LockedRowAt>(
      table,
      (write) => sessionWrite(queue, write, held(queue)),
      burial<LockedRowAt>(queue, table, facts, use, held(queue)).bury,
    ),
    readCandidate: (row) => ({
      id: readId(row),
      key: String(row.lock_key),
      // `@db/sqlite` reads an integer that fits as a number, which would be bound as a REAL.
      due: Number.isInteger(row.due) ? BigInt(row.due as number) : row.due ?? null,
      held: false,
    }),
    read: (row) => ({
      id: readId(row),
      attempt: attempt === undefined ? undefined : Number(row.attempt) - 1,
      content: columns.readContent(row),
    }),
  };
}

type TakeValues = LockedRowAt & { readonly key: string };

function take(queue: QueueSql, key: string): Sql<TakeValues> {
  const { columns: { countAttempt, delivered, id, table } } = queue;
  const claimable = where<TakeValues>(
    sql`${id} = ${({ id }: TakeValues) => id}`,
    ...queue.rows(),
    ...queue.due(),
    sql`${key} = ${({ key }: TakeValues) => key}`,
  );
  return countAttempt.length === 0
    ? sql`SELECT ${delivered} FROM ${table} ${claimable}`
    : sql`UPDATE ${table} SET ${join(countAttempt, ", ")} ${claimable}RETURNING ${delivered}`;
}

/** What holds for the row while its holder has it: its attempt is counted, once and by nobody else. */
function held(queue: QueueSql): readonly Sql<LockedRowAt>[] {
  const { columns: { attempt, id } } = queue;
  const counted = ({ attempt }: LockedRowAt): bigint => BigInt(attempt ?? 0) + 1n;
  return [
    sql`${id} = ${({ id }: LockedRowAt) => id}`,
    ...queue.inGroup(),
    ...(attempt === undefined ? [] : [sql`${attempt} = ${counted}`]),
  ];
}
