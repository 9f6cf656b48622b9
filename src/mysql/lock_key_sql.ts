import type { LockKeyPart, TableDescription, TableFacts } from "../driver/dialect.ts";
import { quote } from "./quote.ts";
import { join, type Sql, sql } from "../driver/sql.ts";

/**
 * The key of the lock of a row `t`, as text: the server's own of each column, empty where it is NULL.
 * Bytes are no text, and stand in hexadecimal digits.
 */
export function lockKeySql({ lockKey = [] }: TableDescription, { columns }: TableFacts): Sql {
  const parts = lockKey.map((part) => keyPart(part, columns));
  return sql`CONCAT(${join(parts, ", ")})`;
}

function keyPart(part: LockKeyPart, types: ReadonlyMap<string, string>): Sql {
  if (typeof part === "string") return sql`${() => part}`;
  const column = `t.${quote(part.column)}`;
  const value = BYTES.test(types.get(part.column) ?? "") ? `HEX(${column})` : column;
  return sql`COALESCE(CAST(${value} AS CHAR CHARACTER SET utf8mb4), '')`;
}

const BYTES = /^(var)?binary|^(tiny|medium|long)?blob|^bit/;
