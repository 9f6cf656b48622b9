import type { TableDescription } from "../driver/dialect.ts";
import { keyColumns } from "../driver/roles.ts";

/** How each column that is described is declared. */
export function columnDefinitions(table: TableDescription): Readonly<Record<string, string>> {
  const { id, payload, attempt, lockedUntil, group, priority, retryAfter, processedAt } = table;
  const roles: readonly (readonly [column: string | undefined, definition: string])[] = [
    [id.column, id.generatedBy === "service" ? `VARCHAR(255) ${BY_BYTES}` : GENERATED],
    [group, `VARCHAR(190) ${BY_BYTES}`],
    [payload?.column, payload?.storage === "bytes" ? "LONGBLOB NOT NULL" : "LONGTEXT NOT NULL"],
    [table.headers, "TEXT NULL"],
    [attempt, "INT NOT NULL DEFAULT 1"],
    [lockedUntil, "DATETIME(3) NULL"],
    [priority, "INT NOT NULL DEFAULT 0"],
    [retryAfter, DUE_AT_ONCE],
    [processedAt, "DATETIME(3) NULL"],
    [table.partitionKey, `VARCHAR(255) ${COMPARED_BY_BYTES} NULL`],
    [table.uniqueKey, `VARCHAR(190) ${COMPARED_BY_BYTES} NULL`],
    [table.lastError, "TEXT NULL"],
  ];
  const described = roles.filter(([column]) => column !== undefined);
  const others = keyColumns(table).filter((key) => !described.some(([column]) => column === key));
  return Object.fromEntries([
    ...described,
    ...others.map((column) => [column, `VARCHAR(255) ${BY_BYTES} DEFAULT ''`]),
  ]);
}

const GENERATED = "BIGINT NOT NULL AUTO_INCREMENT";
/** Ids and queues differ by their bytes, not by what a collation takes for equal. */
const COMPARED_BY_BYTES = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";
const BY_BYTES = `${COMPARED_BY_BYTES} NOT NULL`;
/** Long ago, whatever the time zone of the session that inserts. */
const DUE_AT_ONCE = "DATETIME(3) NOT NULL DEFAULT '1970-01-01 00:00:00'";
