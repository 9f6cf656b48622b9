import type { FeedStatements, FeedTables, PollPlan } from "../driver/feed_statements.ts";
import { feedSql } from "../driver/feed_sql.ts";
import type { SqlRow } from "../driver/driver.ts";
import { quoteTable } from "./quote.ts";

/** The statements of a feed for SQLite. */
export function feedStatements(tables: FeedTables): FeedStatements {
  return feedSql(tables, {
    quoteTable,
    returns: true,
    forUpdate: "",
    unlessThere: "ON CONFLICT DO NOTHING",
    types: { name: "TEXT", text: "TEXT", time: "INTEGER" },
    tableOptions: "",
    encodeTime: (time) => time,
    readTime: (column) => column,
    decodeTime: Number,
    // A prepared EXPLAIN does not notice that the schema has changed: each has a text of its own.
    get explain() {
      return `EXPLAIN QUERY PLAN /* ${++explained} */`;
    },
    readPlan,
  });
}

let explained = 0;

/** The events must be found by tenant, scope and number, and come in order without being sorted. */
function readPlan(rows: readonly SqlRow[]): PollPlan {
  const text = rows.map(({ detail }) => String(detail)).join("\n");
  const search = /USING (?:COVERING )?INDEX (\S+) \(tenant=\? AND scope=\? AND seq>\?\)/.exec(text);
  const isServed = search !== null && !text.includes("TEMP B-TREE");
  return { index: isServed ? search[1] : undefined, text };
}
