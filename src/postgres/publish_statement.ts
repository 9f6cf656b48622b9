import type {
  NewRow,
  PublishStatement,
  PublishUse,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import { uniqueColumns } from "../driver/roles.ts";
import type { Statement } from "../driver/statement.ts";
import { Columns } from "./columns.ts";
import { Parameters, type Placeholders } from "./parameters.ts";
import { quote } from "./quote.ts";
import { Times } from "./times.ts";

/** How rows are published. */
export function publishStatement(
  table: TableDescription,
  facts: TableFacts,
  use: PublishUse,
): PublishStatement {
  const columns = new Columns(table, facts);
  const rows = (placeholders: Placeholders<NewRow>): readonly Inserted[] => [
    ...roleValues(columns, table, use, placeholders),
    ...use.columns.map((name) => otherValue(name, facts, placeholders)),
  ];
  return {
    insert: insertOne(columns, table, rows),
    insertMany: (count) => insertMany(columns, rows, count),
    ...find(columns, table),
    readId: (row) => columns.readId(row),
    readIds: (returned) => returned.map((row) => columns.readId(row)),
  };
}

type Inserted = readonly [column: string, value: string];
type RowValues = (placeholders: Placeholders<NewRow>) => readonly Inserted[];

/** With a unique key it inserts, and returns, nothing where there is a row of that key already. */
function insertOne(columns: Columns, table: TableDescription, rows: RowValues): Statement<NewRow> {
  const parameters = new Parameters<NewRow>();
  const inserted = rows(parameters);
  const unique = uniqueColumns(table).map(quote).join(", ");
  const unlessThere = unique === "" ? "" : ` ON CONFLICT (${unique}) DO NOTHING`;
  return parameters.statement(
    `INSERT INTO ${columns.table} (${inserted.map(([column]) => column).join(", ")}) ` +
      `VALUES ${tuple(inserted)}${unlessThere} RETURNING ${columns.id}::text AS id`,
  );
}

function insertMany(
  columns: Columns,
  rows: RowValues,
  count: number,
): Statement<readonly NewRow[]> {
  const parameters = new Parameters<readonly NewRow[]>();
  const all = Array.from(
    { length: count },
    (_, index) => rows(parameters.of((rows) => rows[index]!)),
  );
  return parameters.statement(
    `INSERT INTO ${columns.table} (${all[0]!.map(([column]) => column).join(", ")}) ` +
      `VALUES ${all.map(tuple).join(", ")} RETURNING ${columns.id}::text AS id`,
  );
}

function tuple(inserted: readonly Inserted[]): string {
  return `(${inserted.map(([, value]) => value).join(", ")})`;
}

/** The row that has a unique key already. */
function find(columns: Columns, table: TableDescription): Pick<PublishStatement, "find"> {
  const { group, id, uniqueKey } = columns;
  if (uniqueKey === undefined) return {};
  const parameters = new Parameters<NewRow>();
  const conditions = [
    ...(group === undefined || table.group === undefined
      ? []
      : [`${group} = ${columns.cast("group", parameters.add(({ group }) => group))}`]),
    `${uniqueKey} = ${columns.cast("uniqueKey", parameters.add(({ uniqueKey }) => uniqueKey))}`,
  ];
  return {
    find: parameters.statement(
      `SELECT ${id}::text AS id FROM ${columns.table} WHERE ${conditions.join(" AND ")}`,
    ),
  };
}

function roleValues(
  columns: Columns,
  table: TableDescription,
  use: PublishUse,
  placeholders: Placeholders<NewRow>,
): readonly Inserted[] {
  const { id, payload, attempt, retryAfter } = columns;
  const values: Inserted[] = [];
  const text = (
    role: "headers" | "group" | "priority" | "partitionKey" | "uniqueKey",
    of: (row: NewRow) => string | null,
  ): void => {
    const column = columns[role];
    if (column !== undefined) values.push([column, columns.cast(role, placeholders.add(of))]);
  };
  if (payload !== undefined) {
    const stored = placeholders.add(({ payload }) => payload);
    values.push([
      payload,
      columns.type("payload") === "bytea" ? `${stored}::bytea` : columns.cast("payload", stored),
    ]);
  }
  if (table.id.generatedBy === "service") {
    values.push([id, columns.cast("id", placeholders.add(({ id }) => String(id)))]);
  }
  if (attempt !== undefined) values.push([attempt, "1"]);
  text("headers", ({ headers }) => headers);
  text("group", ({ group }) => group);
  text("priority", ({ priority }) => String(priority));
  text("partitionKey", ({ key }) => key);
  text("uniqueKey", ({ uniqueKey }) => uniqueKey);
  if (retryAfter !== undefined) {
    const times = new Times(columns, use.clock, placeholders);
    const at = times.at("retryAfter", ({ at }) => at);
    values.push([
      retryAfter,
      `coalesce(${at}, ${times.after("retryAfter", ({ delay }) => delay)})`,
    ]);
  }
  return values;
}

/** A column of the service's own: bytes cross as they are, all else as text of its type. */
function otherValue(
  name: string,
  { columns }: TableFacts,
  placeholders: Placeholders<NewRow>,
): Inserted {
  const type = columns.get(name) ?? "text";
  const value = placeholders.add(({ columns }) => {
    const given = columns[name] ?? null;
    return given === null || given instanceof Uint8Array ? given : String(given);
  });
  return [quote(name), type === "bytea" ? `${value}::bytea` : `${value}::text::${type}`];
}
