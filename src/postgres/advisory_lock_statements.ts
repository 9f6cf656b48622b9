import type {
  AdvisoryLockStatements,
  LockedRowAt,
  QueueUse,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import type { Statement } from "../driver/statement.ts";
import { candidates } from "./candidates.ts";
import { Columns } from "./columns.ts";
import { lockKeySql } from "./lock_key_sql.ts";
import { inGroup, QueueSql, where } from "./queue_sql.ts";

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
    remove: remove(columns, use),
    ...delay(columns, use),
    ...(attempt === undefined
      ? {}
      : { giveBack: write(columns, use, () => [`${attempt} = t.${attempt} - 1`]) }),
    ...bury(columns, use),
    readCandidate: (row) => ({
      id: columns.readId(row),
      key: String(row.lock_key),
      due: row.due ?? null,
      held: Number(row.held) === 1,
    }),
    read: (row) => ({
      id: columns.readId(row),
      attempt: attempt === undefined ? undefined : Number(row.attempt) - 1,
      payload: row.payload ?? null,
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

function remove(columns: Columns, use: QueueUse): Statement<LockedRowAt> {
  const { processedAt, table } = columns;
  if (processedAt !== undefined) {
    return write(columns, use, ({ times }) => [`${processedAt} = ${times.now("processedAt")}`]);
  }
  return whileHeld(new QueueSql(columns, use), use, `DELETE FROM ${table} AS t`);
}

function delay(columns: Columns, use: QueueUse): Pick<AdvisoryLockStatements, "delay"> {
  const { retryAfter } = columns;
  if (retryAfter === undefined) return {};
  return {
    delay: write<LockedRowAt & { readonly delay: number }>(columns, use, ({ times }) => [
      `${retryAfter} = ${times.after("retryAfter", ({ delay }) => delay)}`,
    ]),
  };
}

function bury(columns: Columns, use: QueueUse): Pick<AdvisoryLockStatements, "bury"> {
  const { group, retryAfter } = columns;
  if (group === undefined) return {};
  return {
    bury: write<LockedRowAt & { readonly group: string }>(columns, use, (sql) => [
      `${group} = ${sql.value("group", ({ group }) => group)}`,
      ...(retryAfter === undefined ? [] : [`${retryAfter} = ${sql.times.now("retryAfter")}`]),
    ]),
  };
}

function write<Values extends LockedRowAt>(
  columns: Columns,
  use: QueueUse,
  set: (sql: QueueSql<Values>) => readonly string[],
): Statement<Values> {
  const sql = new QueueSql<Values>(columns, use);
  return whileHeld(sql, use, `UPDATE ${columns.table} AS t SET ${set(sql).join(", ")}`);
}

/** Only while its holder has the row: its attempt is counted, once and by nobody else. */
function whileHeld<Values extends LockedRowAt>(
  sql: QueueSql<Values>,
  use: QueueUse,
  verb: string,
): Statement<Values> {
  const { attempt, id } = sql.columns;
  const held = [...rowAt(sql), ...inGroup(sql.columns, use, sql.parameters)];
  if (attempt !== undefined) {
    held.push(`t.${attempt} = ${sql.value("attempt", ({ attempt }) => (attempt ?? 0) + 1)}`);
  }
  return sql.statement(`${verb} ${where(held)}RETURNING t.${id}::text AS id`);
}

/** The row, on the session that holds the lock. */
function rowAt<Values extends LockedRowAt>(sql: QueueSql<Values>): readonly string[] {
  return [
    `t.${sql.columns.id} = ${sql.value("id", ({ id }) => id)}`,
    `pg_backend_pid() = ${sql.parameters.add(({ holder }) => String(holder))}::text::int`,
  ];
}
