import { bareTable, quoteName, quoteTableName, splitTable } from "../driver/identifier.ts";

/** A name as an identifier. */
export function quote(name: string): string {
  return quoteName(name, '"');
}

/** `table` or `schema.table` as an identifier. */
export function quoteTable(table: string): string {
  return quoteTableName(table, '"');
}

/** The name of an index, which SQLite keeps in the schema of its table. */
export function quoteIndex(table: string, suffix: string): string {
  return [...splitTable(table).slice(0, -1), `${bareTable(table)}_${suffix}`].map(quote).join(".");
}
