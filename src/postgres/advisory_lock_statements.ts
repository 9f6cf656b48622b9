import type {
  AdvisoryLockStatements,
  LockedRowAt,
  QueueUse,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import type { Statement } from "../driver/statement.ts";
import { advisoryLockWrites } from "../driver/session_writes.ts";
import { burial } from "./burial.ts";
import { candidates } from "./candidates.ts";
import { Columns } from "./columns.ts";
import { lockKeySql } from "./lock_key_sql.ts";
import { inGroup, QueueSql, where } from "./queue_sql.ts";
import { sessionWrite } from "./session_write.ts";

/** The advisory lock form's statements for one queue. */
export function advisoryLockStatements(
  table: TableDescription,
  facts: TableFacts,
  use: QueueUse,
): AdvisoryLockStatements {
  const columns = new Columns(table, facts);
  const key = lockKeySql(table);
  const { attempt } = columns;
  return {
    candidates: candidates(columns, use, key),
    take: [take(columns, use, key)],
    ...advisoryLockWrites<LockedRowAt>(
      table,
      (write) => sessionWrite(columns, use, write, (sql) => whileHeld(sql, use)),
      burial<LockedRowAt>(columns, table, facts, use, (sql) => whileHeld(sql, use)).bury,
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

function take(columns: Columns, use: QueueUse, key: string): Statement<TakeValues> {
  const { countAttempt, delivered, table } = columns;
  const sql = new QueueSql<TakeValues>(columns, use);
  const sameKey = `${key} = ${sql.parameters.add(({ key }) => key)}::text`;
  const claimable = where([...rowAt(sql), ...sql.rows, ...sql.due, sameKey]);
  return sql.statement(
    countAttempt.length === 0
      ? `SELECT ${delivered} FROM ${table} AS t ${claimable}FOR UPDATE`
      : `UPDATE ${table} AS t SET ${countAttempt.join(", ")} ${claimable}RETURNING ${delivered}`,
  );
}

/** Only while its holder has the row: its attempt is counted, once and by nobody else. */
function whileHeld<Values extends LockedRowAt>(
  sql: QueueSql<Values>,
  use: QueueUse,
): readonly string[] {
  const { attempt } = sql.columns;
  const held = [...rowAt(sql), ...inGroup(sql.columns, use, sql.parameters)];
  if (attempt !== undefined) {
    held.push(`t.${attempt} = ${sql.value("attempt", ({ attempt }) => (attempt ?? 0) + 1)}`);
  }
  return held;
}

/** The row, on the session that holds the lock. */
function rowAt<Values extends LockedRowAt>(sql: QueueSql<Values>): readonly string[] {
  return [
    `t.${sql.columns.id} = ${sql.value("id", ({ id }) => id)}`,
    `pg_backend_pid() = ${sql.parameters.add(({ holder }) => String(holder))}::text::int`,
  ];
}
