import type { TableDescription } from "../driver/dialect.ts";
import { bareTable } from "../driver/identifier.ts";
import { quote, quoteTable } from "./quote.ts";

/** The table, with the index that its claims read. */
export function ddl(table: TableDescription): readonly string[] {
  const lines = [
    ...Object.entries(columnDefinitions(table))
      .map(([column, definition]) => `${quote(column)} ${definition}`),
    `PRIMARY KEY (${quote(table.id.column)})`,
    ...leaseIndex(table),
  ];
  return [
    `CREATE TABLE ${quoteTable(table.table)} (\n  ${lines.join(",\n  ")}\n) ` +
    `ENGINE = InnoDB DEFAULT CHARSET = utf8mb4`,
  ];
}

/** How each column is declared. */
export function columnDefinitions(table: TableDescription): Readonly<Record<string, string>> {
  const definitions: Record<string, string> = {
    [table.id.column]: table.id.generatedBy === "service"
      // Ids differ by their bytes, not by what a collation takes for equal.
      ? "VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"
      : "BIGINT NOT NULL AUTO_INCREMENT",
    [table.payload.column]: table.payload.storage === "bytes"
      ? "LONGBLOB NOT NULL"
      : "LONGTEXT NOT NULL",
  };
  if (table.attempt !== undefined) definitions[table.attempt] = "INT NOT NULL DEFAULT 1";
  if (table.lockedUntil !== undefined) definitions[table.lockedUntil] = "DATETIME(3) NULL";
  return definitions;
}

/** Free rows are those whose expiry equals NULL, in order of id; so one index serves both parts. */
function leaseIndex(table: TableDescription): readonly string[] {
  if (table.lockedUntil === undefined) return [];
  const name = quote(`${bareTable(table.table)}_leased`);
  return [`KEY ${name} (${quote(table.lockedUntil)}, ${quote(table.id.column)})`];
}
