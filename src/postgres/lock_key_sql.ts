import type { TableDescription } from "../driver/dialect.ts";
import { quote } from "./quote.ts";

/** The key of a row's lock, as SQL. */
export function lockKeySql({ lockKey = [] }: TableDescription): string {
  return lockKey.map((part) =>
    typeof part === "string" ? literal(part) : `coalesce(t.${quote(part.column)}::text, '')`
  ).join(" || ");
}

/** The E makes a backslash mean the same whatever the server's settings are. */
function literal(text: string): string {
  return `E'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'::text`;
}
