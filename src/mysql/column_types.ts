import type { TableDescription } from "../driver/dialect.ts";

/** Types of whole numbers. */
export const INTEGERS: readonly string[] = ["bigint", "int", "mediumint", "smallint", "tinyint"];

/** The types that can do for the column's role; `undefined` where it plays none. */
export function wantedTypes(
  table: TableDescription,
  column: string,
): readonly string[] | undefined {
  switch (column) {
    case table.id.column:
      return [...INTEGERS, "char", "varchar", "uuid"];
    case table.payload?.column:
      return table.payload?.storage === "bytes"
        ? ["longblob", "mediumblob", "blob", "varbinary"]
        : ["longtext", "mediumtext", "text", "varchar", "json"];
    case table.attempt:
    case table.priority:
      return INTEGERS;
    case table.headers:
      return ["text", "mediumtext", "longtext", "varchar", "json"];
    case table.partitionKey:
      return ["varchar", "char", ...INTEGERS, "text", "uuid"];
    case table.lastError:
      return ["text", "varchar", "mediumtext", "longtext", "tinytext"];
    case table.uniqueKey:
      return ["varchar", "char"];
    case table.group:
      return ["varchar", "char", "text", "tinytext", "mediumtext", "longtext"];
    case table.lockedUntil:
    case table.retryAfter:
    case table.processedAt:
      return ["datetime", "timestamp", "bigint"];
  }
}
