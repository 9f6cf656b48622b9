/** What an identifier is quoted with: `"` in standard SQL, a backtick in MySQL and MariaDB. */
export type QuoteMark = '"' | "`";

/** A name as an identifier, whatever is in it. */
export function quoteName(name: string, mark: QuoteMark): string {
  return `${mark}${name.replaceAll(mark, mark + mark)}${mark}`;
}

/** `table` or `schema.table` as an identifier. */
export function quoteTableName(table: string, mark: QuoteMark): string {
  return splitTable(table).map((part) => quoteName(part, mark)).join(".");
}

/** The schema, if one is named, and the table. */
export function splitTable(table: string): string[] {
  const dot = table.indexOf(".");
  return dot < 0 ? [table] : [table.slice(0, dot), table.slice(dot + 1)];
}

/** The name of the table without its schema. */
export function bareTable(table: string): string {
  return splitTable(table).at(-1)!;
}
