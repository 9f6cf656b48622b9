import type { FeedStatements, FeedTables, PollPlan } from "../driver/feed_statements.ts";
import { feedSql } from "../driver/feed_sql.ts";
import type { SqlRow } from "../driver/driver.ts";
import { quoteTable } from "./quote.ts";

/** The statements of a feed for MySQL and MariaDB. */
export function feedStatements(tables: FeedTables): FeedStatements {
  return feedSql(tables, {
    quoteTable,
    returns: false,
    // In a caller's transaction at REPEATABLE READ, a plain SELECT reads what was there at its start.
    forUpdate: " FOR UPDATE",
    unlessThere: "ON DUPLICATE KEY UPDATE seq = seq",
    types: {
      name: "VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
      text: "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
      time: "DATETIME(3)",
    },
    tableOptions: " ENGINE = InnoDB DEFAULT CHARSET = utf8mb4",
    encodeTime: (time) => new Date(time).toISOString().replace("T", " ").slice(0, -1),
    readTime: (column) => `CAST(${column} AS CHAR)`,
    decodeTime: (value) => Date.parse(`${String(value).replace(" ", "T")}Z`),
    explain: "EXPLAIN FORMAT = TRADITIONAL",
    readPlan,
  });
}

/** The events must be found by a range of an index, and come in its order. */
function readPlan(rows: readonly SqlRow[]): PollPlan {
  const text = rows.map((row) => JSON.stringify(row, (_, value) => asText(value))).join("\n");
  const [row] = rows;
  const extra = String(row?.Extra ?? "");
  const isServed = row?.type === "range" && row.key !== null && !extra.includes("filesort");
  return { index: isServed ? String(row.key) : undefined, text };
}

function asText(value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}
