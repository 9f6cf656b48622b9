import type { NewRow, PublishStatement, PublishUse, TableDescription } from "../driver/dialect.ts";
import { uniqueColumns } from "../driver/roles.ts";
import { join, sql, type SqlPart } from "../driver/sql.ts";
import { Columns, readId, type SqliteFacts } from "./columns.ts";
import { quote } from "./quote.ts";
import { where } from "./queue_sql.ts";

/** How rows are published: many of them one by one, which in this process costs no more. */
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
    [columns.headers, ({ headers }) => headers],
    [columns.group, ({ group }) => group],
    [columns.priority, ({ priority }) => priority],
    [columns.partitionKey, ({ key }) => key],
    [columns.uniqueKey, ({ uniqueKey }) => uniqueKey],
    [columns.retryAfter, due],
    ...use.columns.map((name) =>
      [quote(name), ({ columns }: NewRow) => columns[name] ?? null] as const
    ),
  ];
  const written = values.filter(([column]) => column !== undefined);
  const names = written.map(([column]) => column).join(", ");
  const unique = uniqueColumns(table).map(quote).join(", ");
  const unlessThere = unique === "" ? "" : ` ON CONFLICT (${unique}) DO NOTHING`;
  return {
    insert: sql`INSERT INTO ${columns.table} (${names}) VALUES (${
      join(written.map(([, value]) => value), ", ")
    })${unlessThere} RETURNING ${columns.id} AS id`,
    ...find(columns),
    readId,
    readIds: (rows) => rows.map(readId),
  };
}

/** The row that has a unique key already. */
function find(columns: Columns): Pick<PublishStatement, "find"> {
  const { group, id, table, uniqueKey } = columns;
  if (uniqueKey === undefined) return {};
  const isIt = where<NewRow>(
    ...(group === undefined ? [] : [sql<NewRow>`${group} = ${({ group }) => group}`]),
    sql<NewRow>`${uniqueKey} = ${({ uniqueKey }) => uniqueKey}`,
  );
  return { find: sql`SELECT ${id} AS id FROM ${table} ${isIt}` };
}
