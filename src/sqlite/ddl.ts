import { bareTable } from "../driver/identifier.ts";
import type { TableDescription } from "../driver/dialect.ts";
import { quote, quoteIndex, quoteTable } from "./quote.ts";

/** The table, and the indexes that its claims read. */
export function ddl(table: TableDescription): readonly string[] {
  const columns = Object.entries(columnDefinitions(table))
    .map(([column, definition]) => `  ${quote(column)} ${definition}`);
  return [
    `CREATE TABLE ${quoteTable(table.table)} (\n${columns.join(",\n")}\n)`,
    ...leaseIndexes(table),
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
    [table.payload.column]: table.payload.storage === "bytes" ? "BLOB NOT NULL" : "TEXT NOT NULL",
  };
  if (table.attempt !== undefined) definitions[table.attempt] = "INTEGER NOT NULL DEFAULT 1";
  // Milliseconds since 1970.
  if (table.lockedUntil !== undefined) definitions[table.lockedUntil] = "INTEGER";
  return definitions;
}

/** The indexes of the two parts of a claim: free rows by id, leased rows by expiry. */
function leaseIndexes(table: TableDescription): readonly string[] {
  if (table.lockedUntil === undefined) return [];
  const lockedUntil = quote(table.lockedUntil);
  const target = quote(bareTable(table.table));
  return [
    `CREATE INDEX ${quoteIndex(table.table, "free")} ON ${target} (${quote(table.id.column)}) ` +
    `WHERE ${lockedUntil} IS NULL`,
    `CREATE INDEX ${quoteIndex(table.table, "leased")} ON ${target} ` +
    `(${lockedUntil}, ${quote(table.id.column)}) ` +
    `WHERE ${lockedUntil} IS NOT NULL`,
  ];
}
