import type { NewRow, PublishStatement, PublishUse, TableDescription } from "../driver/dialect.ts";
import { join, sql, type SqlPart } from "../driver/sql.ts";
import { Columns, readId, type SqliteFacts } from "./columns.ts";
import { quote } from "./quote.ts";

/** How a row is published. */
export function publishStatement(
  table: TableDescription,
  facts: SqliteFacts,
  use: PublishUse,
): PublishStatement {
  const columns = new Columns(table, facts);
  const due = ({ at, now, delay }: NewRow) => columns.encodeTime("retryAfter", at ?? now + delay);
  const values: readonly (readonly [column: string | undefined, value: SqlPart<NewRow>])[] = [
    [columns.payload, ({ payload }) => payload],
    [table.id.generatedBy === "service" ? columns.id : undefined, ({ id }) => id ?? null],
    [columns.attempt, "1"],
    [columns.group, ({ group }) => group],
    [columns.priority, ({ priority }) => priority],
    [columns.retryAfter, due],
    ...use.columns.map((name) =>
      [quote(name), ({ columns }: NewRow) => columns[name] ?? null] as const
    ),
  ];
  const written = values.filter(([column]) => column !== undefined);
  const names = written.map(([column]) => column).join(", ");
  return {
    insert: sql`INSERT INTO ${columns.table} (${names}) VALUES (${
      join(written.map(([, value]) => value), ", ")
    }) RETURNING ${columns.id} AS id`,
    readId,
  };
}
