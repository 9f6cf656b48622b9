import type {
  AdvisoryLockStatements,
  LockedRowAt,
  QueueUse,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import { candidates } from "./candidates.ts";
import { Columns } from "./columns.ts";
import { lockKeySql } from "./lock_key_sql.ts";
import { QueueSql } from "./queue_sql.ts";
import { join, type Sql, sql, type SqlPart, where } from "../driver/sql.ts";

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
    remove: remove(queue),
    ...delay(queue),
    ...(attempt === undefined
      ? {}
      : { giveBack: update(queue, [`t.${attempt} = t.${attempt} - 1`], held(queue)) }),
    ...bury(queue),
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
    update(queue, countAttempt, claimable),
    sql`SELECT ${delivered} FROM ${table} AS t WHERE t.${id} = ${byId}`,
  ];
}

function remove(queue: QueueSql): Sql<LockedRowAt> {
  const { columns: { processedAt, table }, times } = queue;
  return processedAt === undefined
    ? sql`DELETE t FROM ${table} AS t ${where(held(queue))}`
    : update(queue, [sql`t.${processedAt} = ${times.present("processedAt")}`], held(queue));
}

function delay(queue: QueueSql): Pick<AdvisoryLockStatements, "delay"> {
  const { columns: { retryAfter }, times } = queue;
  if (retryAfter === undefined) return {};
  type Values = LockedRowAt & { readonly delay: number };
  const due = times.after("retryAfter", ({ delay }: Values) => delay);
  return { delay: update<Values>(queue, [sql`t.${retryAfter} = ${due}`], held(queue)) };
}

function bury(queue: QueueSql): Pick<AdvisoryLockStatements, "bury"> {
  const { columns: { group, retryAfter }, times } = queue;
  if (group === undefined) return {};
  type Values = LockedRowAt & { readonly group: string };
  const set: SqlPart<Values>[] = [sql`t.${group} = ${({ group }: Values) => group}`];
  if (retryAfter !== undefined) set.push(sql`t.${retryAfter} = ${times.present("retryAfter")}`);
  return { bury: update(queue, set, held(queue)) };
}

function update<Values>(
  { columns: { table } }: QueueSql,
  set: readonly SqlPart<Values>[],
  conditions: readonly SqlPart<Values>[],
): Sql<Values> {
  return sql`UPDATE ${table} AS t SET ${join(set, ", ")} ${where(conditions)}`;
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
