import type { TableDescription } from "../driver/dialect.ts";
import { quote } from "./quote.ts";

/** The key of a row's lock, as SQL. */
export function lockKeySql({ lockKey = [] }: TableDescription): string {
  return lockKey.map((part) =>
    typeof part === "string" ? `'${part.replaceAll("'", "''")}'` : textOf(quote(part.column))
  ).map((part) => `(${part})`).join(" || ");
}

/** Bytes need not be text, and would not come back as they were. */
function textOf(column: string): string {
  return `CASE WHEN typeof(${column}) = 'blob' THEN hex(${column}) ` +
    `ELSE coalesce(CAST(${column} AS TEXT), '') END`;
}
