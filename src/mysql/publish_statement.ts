import type {
  NewRow,
  PublishStatement,
  PublishUse,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import { Columns } from "./columns.ts";
import { roundUp } from "./encode_time.ts";
import { quote } from "./quote.ts";
import { join, type Sql, sql, type SqlPart } from "../driver/sql.ts";
import { Times } from "./times.ts";

/** How a row is published. The driver returns the id that the database has made as its row. */
export function publishStatement(
  table: TableDescription,
  facts: TableFacts,
  use: PublishUse,
): PublishStatement {
  const columns = new Columns(table, facts);
  const { id, payload, attempt, group, priority, retryAfter } = columns;
  const values: readonly (readonly [column: string | undefined, value: SqlPart<NewRow>])[] = [
    [payload, ({ payload }) => payload],
    [table.id.generatedBy === "service" ? id : undefined, ({ id }) => id ?? null],
    [attempt, "1"],
    [group, ({ group }) => group],
    [priority, ({ priority }) => priority],
    [retryAfter, due(columns, use)],
    ...use.columns.map((name) =>
      [quote(name), ({ columns }: NewRow) => columns[name] ?? null] as const
    ),
  ];
  const written = values.filter(([column]) => column !== undefined);
  const names = written.map(([column]) => column).join(", ");
  return {
    insert: sql`INSERT INTO ${columns.table} (${names}) VALUES (${
      join(written.map(([, value]) => value), ", ")
    })`,
    readId: (row) => columns.readId(row),
  };
}

function due(columns: Columns, { clock }: PublishUse): Sql<NewRow> {
  const times = new Times(columns, clock);
  const at = ({ at }: NewRow): number | undefined =>
    at === undefined ? undefined : roundUp(columns, "retryAfter", at);
  const later = times.after("retryAfter", ({ delay }: NewRow) => delay);
  return sql`COALESCE(${times.known("retryAfter", at)}, ${later})`;
}
