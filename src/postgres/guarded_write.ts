import type { GuardedStatement, GuardedWrite, LeaseToken, QueueUse } from "../driver/dialect.ts";
import type { LeaseWrite } from "../driver/lease_writes.ts";
import type { Statement } from "../driver/statement.ts";
import type { Role, TimeRole } from "../driver/roles.ts";
import type { Columns } from "./columns.ts";
import { Parameters } from "./parameters.ts";
import { inGroup, type QueueSql, where } from "./queue_sql.ts";

/**
 * A write of a lease under guard: for one row by its own parameters, for many by rows of a JSON text.
 */
export function guardedWrite<Extra>(
  columns: Columns,
  use: QueueUse,
  write: LeaseWrite<Extra>,
): GuardedWrite<Extra> {
  const fields = fieldsOf(columns, write);
  return {
    one: writeOne(columns, use, write, fields),
    many: writeMany(columns, use, write, fields),
  };
}

/** A part of a token or of what is written, as text that is cast to the type of a role's column. */
interface Field<Values> {
  readonly role: Role;
  /** Whether it is written; else it belongs to the guard. */
  readonly written: boolean;
  readonly encode: (values: Values) => string | null;
}

type Fields<Extra> = Readonly<Record<string, Field<LeaseToken & Extra>>>;

function fieldsOf<Extra>(columns: Columns, write: LeaseWrite<Extra>): Fields<Extra> {
  type Values = LeaseToken & Extra;
  const fields: Record<string, Field<Values>> = {};
  const add = (
    name: string,
    role: Role,
    written: boolean,
    encode: Field<Values>["encode"] | undefined,
  ): void => {
    if (encode !== undefined) fields[name] = { role, written, encode };
  };
  const time = (role: TimeRole, of: ((values: Values) => number) | undefined) =>
    of && ((values: Values) => columns.encodeTime(role, of(values)));
  add("id", "id", false, ({ id }) => String(id));
  if (columns.attempt === undefined) {
    add("expiry", "lockedUntil", false, time("lockedUntil", ({ expiry }) => expiry));
  } else {
    add("attempt", "attempt", false, ({ attempt }) => String(attempt ?? 0));
  }
  add("latest", "lockedUntil", false, time("lockedUntil", ({ latestExpiry }) => latestExpiry));
  if (write === "delete") return fields;
  add("until", "lockedUntil", true, time("lockedUntil", write.until));
  add("due", "retryAfter", true, time("retryAfter", write.due));
  add("done", "processedAt", true, time("processedAt", write.processedAt));
  const { error } = write;
  add("error", "lastError", true, error && ((values) => columns.encodeError(error(values))));
  return fields;
}

/** What holds for the row of a token, in a statement that is for one row. */
export function guardOne(
  sql: QueueSql<LeaseToken & { readonly now: number }>,
  use: QueueUse,
): readonly string[] {
  const { columns, parameters } = sql;
  const fields = fieldsOf(columns, "delete");
  const values = mapFields(
    fields,
    (_, { role, encode }) => columns.cast(role, parameters.add(encode)),
  );
  return [...guardOf(columns, values), ...inGroup(columns, use, parameters)];
}

function writeOne<Extra>(
  columns: Columns,
  use: QueueUse,
  write: LeaseWrite<Extra>,
  fields: Fields<Extra>,
): GuardedStatement<Extra> {
  const parameters = new Parameters<LeaseToken & Extra>();
  const values = mapFields(
    fields,
    (_, { role, encode }) => columns.cast(role, parameters.add(encode)),
  );
  const guard = [...guardOf(columns, values), ...inGroup(columns, use, parameters)];
  return parameters.statement(
    `${verb(columns, write, fields, values)} ${where(guard)}${returning(columns)}`,
  );
}

function writeMany<Extra>(
  columns: Columns,
  use: QueueUse,
  write: LeaseWrite<Extra>,
  fields: Fields<Extra>,
): Statement<readonly (LeaseToken & Extra)[]> {
  const parameters = new Parameters<readonly (LeaseToken & Extra)[]>();
  const rows = parameters.add((tokens) =>
    JSON.stringify(
      tokens.map((token) =>
        Object.fromEntries(
          Object.entries(fields).map(([name, { encode }]) => [name, encode(token)]),
        )
      ),
    )
  );
  const types = Object.entries(fields).map(([name, { role }]) => `${name} ${columns.type(role)}`);
  const values = mapFields(fields, (name) => `held.${name}`);
  const guard = [...guardOf(columns, values), ...inGroup(columns, use, parameters)];
  return parameters.statement(
    `${verb(columns, write, fields, values)} ${write === "delete" ? "USING" : "FROM"} ` +
      `json_to_recordset(${rows}::text::json) AS held(${types.join(", ")}) ` +
      `${where(guard)}${returning(columns)}`,
  );
}

function mapFields<Extra>(
  fields: Fields<Extra>,
  map: (name: string, field: Field<LeaseToken & Extra>) => string,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [name, map(name, field)]),
  );
}

function verb<Extra>(
  columns: Columns,
  write: LeaseWrite<Extra>,
  fields: Fields<Extra>,
  values: Readonly<Record<string, string>>,
): string {
  const { table, attempt, lockedUntil } = columns;
  if (write === "delete") return `DELETE FROM ${table} AS t`;
  const written = Object.entries(fields).filter(([, { written }]) => written)
    .map(([name, { role }]) =>
      role === "lastError"
        ? `${columns[role]} = coalesce(${values[name]}, t.${columns[role]})`
        : `${columns[role]} = ${values[name]}`
    );
  const set = [
    ...(write.until === undefined ? [`${lockedUntil} = NULL`] : []),
    ...written,
    ...(write.giveBack ? [`${attempt} = t.${attempt} - 1`] : []),
  ];
  return `UPDATE ${table} AS t SET ${set.join(", ")}`;
}

/** The row is written only while the token still owns it. */
function guardOf(
  { id, attempt, lockedUntil }: Columns,
  held: Readonly<Record<string, string>>,
): readonly string[] {
  return [
    `t.${id} = ${held.id}`,
    ...(attempt === undefined
      ? [`t.${lockedUntil} IN (${held.expiry}, ${held.latest})`]
      : [`t.${attempt} = ${held.attempt}`, `t.${lockedUntil} <= ${held.latest}`]),
  ];
}

function returning({ id }: Columns): string {
  return `RETURNING t.${id}::text AS id`;
}
