import type {
  AdvisoryLockStatements,
  LockedRowAt,
  QueueUse,
  TableDescription,
} from "../driver/dialect.ts";
import type { SqlValue } from "../driver/driver.ts";
import { join, type Sql, sql, type SqlPart } from "../driver/sql.ts";
import { candidates } from "./candidates.ts";
import type { TimeRole } from "../driver/roles.ts";
import { Columns, readId, type SqliteFacts } from "./columns.ts";
import { lockKeySql } from "./lock_key_sql.ts";
import { QueueSql, where } from "./queue_sql.ts";

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
    remove: remove(queue),
    ...delay(queue),
    ...(attempt === undefined ? {} : { giveBack: update(queue, [`${attempt} = ${attempt} - 1`]) }),
    ...bury(queue),
    readCandidate: (row) => ({
      id: readId(row),
      key: String(row.lock_key),
      // `@db/sqlite` reads an integer that fits as a number, which would be bound as a REAL.
      due: typeof row.due === "number" ? BigInt(row.due) : row.due ?? null,
      held: false,
    }),
    read: (row) => ({
      id: readId(row),
      attempt: attempt === undefined ? undefined : Number(row.attempt) - 1,
      payload: row.payload ?? null,
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

function remove(queue: QueueSql): Sql<LockedRowAt> {
  const { columns: { id, processedAt, table } } = queue;
  return processedAt === undefined
    ? sql`DELETE FROM ${table} ${where(...held(queue))}RETURNING ${id} AS id`
    : update(queue, [sql`${processedAt} = ${time(queue, "processedAt", ({ now }) => now)}`]);
}

function delay(queue: QueueSql): Pick<AdvisoryLockStatements, "delay"> {
  const { columns: { retryAfter } } = queue;
  if (retryAfter === undefined) return {};
  type Values = LockedRowAt & { readonly delay: number };
  const due = time(queue, "retryAfter", ({ now, delay }: Values) => now + delay);
  return { delay: update<Values>(queue, [sql`${retryAfter} = ${due}`]) };
}

function bury(queue: QueueSql): Pick<AdvisoryLockStatements, "bury"> {
  const { columns: { group, retryAfter } } = queue;
  if (group === undefined) return {};
  type Values = LockedRowAt & { readonly group: string };
  const set: SqlPart<Values>[] = [sql`${group} = ${({ group }: Values) => group}`];
  if (retryAfter !== undefined) {
    set.push(sql`${retryAfter} = ${time(queue, "retryAfter", ({ now }: Values) => now)}`);
  }
  return { bury: update(queue, set) };
}

function update<Values extends LockedRowAt>(
  queue: QueueSql,
  set: readonly SqlPart<Values>[],
): Sql<Values> {
  const { columns: { id, table } } = queue;
  return sql`UPDATE ${table} SET ${join(set, ", ")} ${
    where<Values>(...held(queue))
  }RETURNING ${id} AS id`;
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

function time<Values>(
  { columns }: QueueSql,
  role: TimeRole,
  of: (values: Values) => number,
): (values: Values) => SqlValue {
  return (values) => columns.encodeTime(role, of(values));
}
