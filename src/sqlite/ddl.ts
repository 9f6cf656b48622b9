import type { TableDescription } from "../driver/dialect.ts";
import { bareTable } from "../driver/identifier.ts";
import { type PartialIndex, partialIndexes } from "../driver/partial_indexes.ts";
import { keyColumns, uniqueColumns } from "../driver/roles.ts";
import { quote, quoteIndex, quoteTable } from "./quote.ts";

/** The table, and the indexes that its claims read. */
export function ddl(table: TableDescription): readonly string[] {
  const columns = Object.entries(columnDefinitions(table))
    .map(([column, definition]) => `  ${quote(column)} ${definition}`);
  return [
    `CREATE TABLE ${quoteTable(table.table)} (\n${columns.join(",\n")}\n)`,
    ...partialIndexes(table).map((index) => createIndex(table.table, index)),
    ...uniqueIndex(table),
  ];
}

/** How each column is declared. */
export function columnDefinitions(table: TableDescription): Readonly<Record<string, string>> {
  const definitions: Record<string, string> = {
    // Without AUTOINCREMENT the highest id is used again after its row is deleted, and a late
    // settle could hit the new row.
    [table.id.column]: table.id.generatedBy === "service"
      ? "TEXT NOT NULL PRIMARY KEY"
      : "INTEGER PRIMARY KEY AUTOINCREMENT",
  };
  const define = (column: string | undefined, definition: string): void => {
    if (column !== undefined) definitions[column] ??= definition;
  };
  define(
    table.payload?.column,
    table.payload?.storage === "bytes" ? "BLOB NOT NULL" : "TEXT NOT NULL",
  );
  define(table.headers, "TEXT");
  define(table.group, "TEXT NOT NULL");
  define(table.priority, "INTEGER NOT NULL DEFAULT 0");
  // Times are milliseconds since 1970. A row that is inserted without one is due at once.
  define(table.retryAfter, "INTEGER NOT NULL DEFAULT 0");
  define(table.attempt, "INTEGER NOT NULL DEFAULT 1");
  define(table.processedAt, "INTEGER");
  define(table.lockedUntil, "INTEGER");
  define(table.partitionKey, "TEXT");
  define(table.uniqueKey, "TEXT");
  define(table.lastError, "TEXT");
  for (const column of keyColumns(table)) define(column, "TEXT NOT NULL DEFAULT ''");
  return definitions;
}

/** The statement that creates the index of the role `uniqueKey`; none without it. */
export function uniqueIndex(table: TableDescription): readonly string[] {
  const columns = uniqueColumns(table);
  if (columns.length === 0) return [];
  const name = quoteIndex(table.table, "unique");
  const list = columns.map(quote).join(", ");
  return [`CREATE UNIQUE INDEX ${name} ON ${quote(bareTable(table.table))} (${list})`];
}

/** The statement that creates an index that claims read. */
export function createIndex(table: string, { suffix, definition }: PartialIndex): string {
  return `CREATE INDEX ${quoteIndex(table, suffix)} ON ${quote(bareTable(table))} ${definition}`;
}
