import type { GuardedStatement, GuardedWrite, LeaseToken, QueueUse } from "../driver/dialect.ts";
import type { LeaseWrite } from "../driver/lease_writes.ts";
import type { Statement } from "../driver/statement.ts";
import type { Columns } from "./columns.ts";
import { fieldsOf, type WriteFields } from "./write_fields.ts";
import { QueueSql } from "./queue_sql.ts";
import { join, type Sql, sql, type SqlPart, where } from "../driver/sql.ts";

/**
 * A write of a lease under guard: for one row by its own parameters, for many by rows of a JSON text.
 * Rows are counted, not returned: neither database returns both kinds.
 */
export function guardedWrite<Extra>(
  columns: Columns,
  use: QueueUse,
  write: LeaseWrite<Extra>,
): GuardedWrite<Extra> {
  const fields = fieldsOf(columns, write);
  const queue = new QueueSql(columns, use);
  return { one: writeOne(queue, write, fields), many: writeMany(queue, write, fields) };
}

function writeOne<Extra>(
  queue: QueueSql,
  write: LeaseWrite<Extra>,
  fields: WriteFields<Extra>,
): GuardedStatement<Extra> {
  const values = valuesOf(fields);
  return sql`${verb(write)} ${queue.columns.table} AS t ${set(queue, write, fields, values)}${
    where(guard(queue, values))
  }`;
}

/** Driven by the tokens, so that each row is reached, and locked, by its primary key only. */
function writeMany<Extra>(
  queue: QueueSql,
  write: LeaseWrite<Extra>,
  fields: WriteFields<Extra>,
): Statement<readonly (LeaseToken & Extra)[]> {
  type Values = readonly (LeaseToken & Extra)[];
  const all = Object.entries(fields);
  const rows = (tokens: Values): string =>
    JSON.stringify(
      tokens.map((token) =>
        Object.fromEntries(all.map(([name, { encode }]) => {
          const value = encode(token);
          return [name, value === null ? null : String(value)];
        }))
      ),
    );
  const types = all.map(([name, { type }]) => `${name} ${type} PATH '$.${name}'`).join(", ");
  const values = Object.fromEntries(all.map(([name]) => [name, `held.${name}`]));
  const held: Sql<Values> = sql`JSON_TABLE(${rows}, '$[*]' COLUMNS (${types})) AS held`;
  const { columns } = queue;
  const owned = sql<Values>`${held} STRAIGHT_JOIN ${
    columns.tableBy("row")
  } ON t.${columns.id} = held.id`;
  return sql`${verb(write)} ${owned} ${set(queue, write, fields, values)}${
    where(guard<Values>(queue, values))
  }`;
}

/** What holds for the row of a token, in a statement that is for one row. */
export function guardOne(
  queue: QueueSql,
): readonly SqlPart<LeaseToken & { readonly now: number }>[] {
  return guard(queue, valuesOf(fieldsOf<unknown>(queue.columns, "delete")));
}

/** What is compared and written, as parameters. */
function valuesOf<Extra>(
  fields: WriteFields<Extra>,
): Readonly<Record<string, Sql<LeaseToken & Extra>>> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, { type, encode }]): [string, Sql<LeaseToken & Extra>] => [
      name,
      type === "DATETIME(6)" ? sql`CAST(${encode} AS DATETIME(6))` : sql`${encode}`,
    ]),
  );
}

function verb(write: LeaseWrite<never>): string {
  return write === "delete" ? "DELETE t FROM" : "UPDATE";
}

function set<Values>(
  { columns }: QueueSql,
  write: LeaseWrite<never>,
  fields: WriteFields<never>,
  values: Readonly<Record<string, SqlPart<Values>>>,
): Sql<Values> {
  const { attempt, lockedUntil } = columns;
  if (write === "delete") return join([], "");
  const written = Object.entries(fields).filter(([, { written }]) => written)
    .map(([name, { role }]): Sql<Values> =>
      role === "lastError"
        ? sql`t.${columns[role]!} = COALESCE(${values[name]!}, t.${columns[role]!})`
        : sql`t.${columns[role]!} = ${values[name]!}`
    );
  const all = [
    ...(write.until === undefined ? [`t.${lockedUntil} = NULL`] : []),
    ...written,
    ...(write.giveBack ? [`t.${attempt} = t.${attempt} - 1`] : []),
  ];
  return sql`SET ${join<Values>(all, ", ")} `;
}

/** The row is written only while the token still owns it. */
function guard<Values>(
  queue: QueueSql,
  held: Readonly<Record<string, SqlPart<Values>>>,
): readonly Sql<Values>[] {
  const { id, attempt, lockedUntil } = queue.columns;
  const fence: readonly Sql<Values>[] = attempt === undefined
    ? [sql`t.${lockedUntil!} IN (${held.expiry!}, ${held.latest!})`]
    : [sql`t.${attempt} = ${held.attempt!}`, sql`t.${lockedUntil!} <= ${held.latest!}`];
  return [sql`t.${id} = ${held.id!}`, ...fence, ...queue.inGroup()];
}
