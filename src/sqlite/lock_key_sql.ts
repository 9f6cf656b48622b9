import type { TableDescription } from "../driver/dialect.ts";
import { quote } from "./quote.ts";

/** The key of a row's lock, as SQL. */
export function lockKeySql({ lockKey = [] }: TableDescription): string {
  return lockKey.map((part) =>
    typeof part === "string"
      ? `'${part.replaceAll("'", "''")}'`
      : `coalesce(CAST(${quote(part.column)} AS TEXT), '')`
  ).join(" || ");
}
