import type {
  NewRow,
  PublishStatement,
  PublishUse,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import { Columns } from "./columns.ts";
import { Parameters } from "./parameters.ts";
import { quote } from "./quote.ts";
import { Times } from "./times.ts";

/** How a row is published. */
export function publishStatement(
  table: TableDescription,
  facts: TableFacts,
  use: PublishUse,
): PublishStatement {
  const columns = new Columns(table, facts);
  const parameters = new Parameters<NewRow>();
  const inserted = [
    ...roleValues(columns, table, use, parameters),
    ...use.columns.map((name) => otherValue(name, facts, parameters)),
  ];
  const insert = parameters.statement(
    `INSERT INTO ${columns.table} (${inserted.map(([column]) => column).join(", ")}) ` +
      `VALUES (${inserted.map(([, value]) => value).join(", ")}) ` +
      `RETURNING ${columns.id}::text AS id`,
  );
  return { insert, readId: (row) => columns.readId(row) };
}

type Inserted = readonly [column: string, value: string];

function roleValues(
  columns: Columns,
  table: TableDescription,
  use: PublishUse,
  parameters: Parameters<NewRow>,
): readonly Inserted[] {
  const { id, payload, attempt, group, priority, retryAfter } = columns;
  const stored = parameters.add(({ payload }) => payload);
  const values: Inserted[] = [[
    payload,
    columns.type("payload") === "bytea" ? `${stored}::bytea` : columns.cast("payload", stored),
  ]];
  if (table.id.generatedBy === "service") {
    values.push([id, columns.cast("id", parameters.add(({ id }) => String(id)))]);
  }
  if (attempt !== undefined) values.push([attempt, "1"]);
  if (group !== undefined) {
    values.push([group, columns.cast("group", parameters.add(({ group }) => group))]);
  }
  if (priority !== undefined) {
    const value = parameters.add(({ priority }) => String(priority));
    values.push([priority, columns.cast("priority", value)]);
  }
  if (retryAfter !== undefined) {
    const times = new Times(columns, use.clock, parameters);
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
  parameters: Parameters<NewRow>,
): Inserted {
  const type = columns.get(name) ?? "text";
  const value = parameters.add(({ columns }) => {
    const given = columns[name] ?? null;
    return given === null || given instanceof Uint8Array ? given : String(given);
  });
  return [quote(name), type === "bytea" ? `${value}::bytea` : `${value}::text::${type}`];
}
