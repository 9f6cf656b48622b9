import { quoteName, quoteTableName } from "../driver/identifier.ts";

/** A name as an identifier. */
export function quote(name: string): string {
  return quoteName(name, "`");
}

/** `table` or `schema.table` as an identifier. */
export function quoteTable(table: string): string {
  return quoteTableName(table, "`");
}
