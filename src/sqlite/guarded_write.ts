import type { GuardedWrite, LeaseToken } from "../driver/dialect.ts";
import type { SqlValue } from "../driver/driver.ts";
import type { LeaseWrite } from "../driver/lease_writes.ts";
import { join, type Sql, sql, type SqlPart } from "../driver/sql.ts";
import type { TimeRole } from "../driver/roles.ts";
import type { Columns } from "./columns.ts";
import { type QueueSql, where } from "./queue_sql.ts";
import { failure } from "./session_write.ts";

/** Adds the guard: the row is written only while the token still owns it. */
export function guardedWrite<Extra>(
  queue: QueueSql,
  write: LeaseWrite<Extra>,
): GuardedWrite<Extra> {
  const { columns } = queue;
  return {
    one: sql<LeaseToken & Extra>`${verb(columns, write)} ${
      where(...guard(columns), ...queue.inGroup())
    }RETURNING ${columns.id} AS id`,
  };
}

/** What holds for the row of a token. */
export function guardOne(queue: QueueSql): readonly Sql<LeaseToken & { readonly now: number }>[] {
  return [...guard(queue.columns), ...queue.inGroup()];
}

function verb<Extra>(columns: Columns, write: LeaseWrite<Extra>): Sql<LeaseToken & Extra> {
  const { table, attempt } = columns;
  if (write === "delete") return sql`DELETE FROM ${table}`;
  const set: SqlPart<LeaseToken & Extra>[] = [
    ...time(columns, "lockedUntil", write.until ?? "NULL"),
    ...time(columns, "retryAfter", write.due),
    ...time(columns, "processedAt", write.processedAt),
    ...(write.error === undefined ? [] : failure(columns)),
    ...(write.giveBack ? [`${attempt} = ${attempt} - 1`] : []),
  ];
  return sql`UPDATE ${table} SET ${join(set, ", ")}`;
}

function time<Extra>(
  columns: Columns,
  role: TimeRole,
  of: ((values: Extra) => number) | "NULL" | undefined,
): readonly SqlPart<LeaseToken & Extra>[] {
  if (of === undefined) return [];
  if (of === "NULL") return [`${columns[role]} = NULL`];
  return [
    sql`${columns[role]!} = ${(values: Extra): SqlValue => columns.encodeTime(role, of(values))}`,
  ];
}

function guard(columns: Columns): readonly Sql<LeaseToken>[] {
  const { id, attempt, lockedUntil } = columns;
  const latest = ({ latestExpiry }: LeaseToken) => columns.encodeTime("lockedUntil", latestExpiry);
  const expiry = ({ expiry }: LeaseToken) => columns.encodeTime("lockedUntil", expiry);
  return [
    sql`${id} = ${({ id }: LeaseToken) => id}`,
    ...(attempt === undefined ? [sql<LeaseToken>`${lockedUntil!} IN (${expiry}, ${latest})`] : [
      sql<LeaseToken>`${attempt} = ${({ attempt }) => BigInt(attempt ?? 0)}`,
      sql<LeaseToken>`${lockedUntil!} <= ${latest}`,
    ]),
  ];
}
