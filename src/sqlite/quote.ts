/** A name as an identifier. */
export function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** `table` or `schema.table` as an identifier. */
export function quoteTable(table: string): string {
  return splitTable(table).map(quote).join(".");
}

/** The schema, if one is named, and the table. */
export function splitTable(table: string): string[] {
  const dot = table.indexOf(".");
  return dot < 0 ? [table] : [table.slice(0, dot), table.slice(dot + 1)];
}

/** The name of an index, which SQLite keeps in the schema of its table. */
export function quoteIndex(table: string, suffix: string): string {
  const parts = splitTable(table);
  const name = `${parts.at(-1)}_${suffix}`;
  return [...parts.slice(0, -1), name].map(quote).join(".");
}
