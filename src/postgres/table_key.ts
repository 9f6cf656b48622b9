/** One name for each table, however a description writes it. */
export function tableKey(table: string): string {
  return table.replace(/^public\./, "");
}
