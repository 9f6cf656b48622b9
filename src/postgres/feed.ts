import type { FeedStatements, FeedTables, PollPlan } from "../driver/feed_statements.ts";
import { feedSql } from "../driver/feed_sql.ts";
import { bareTable } from "../driver/identifier.ts";
import type { SqlRow } from "../driver/driver.ts";
import type { Statement } from "../driver/statement.ts";
import { quoteTable } from "./quote.ts";

/** The statements of a feed for Postgres. */
export function feedStatements(tables: FeedTables): FeedStatements {
  const statements = feedSql(tables, {
    quoteTable,
    returns: true,
    forUpdate: " FOR UPDATE",
    unlessThere: "ON CONFLICT DO NOTHING",
    types: { name: "text", text: "text", time: "timestamptz" },
    tableOptions: "",
    encodeTime: (time) => new Date(time).toISOString(),
    readTime: (column) => `(extract(epoch FROM ${column}) * 1000)::text`,
    decodeTime: (value) => Math.floor(Number(value)),
    explain: "EXPLAIN (FORMAT JSON)",
    readPlan,
  });
  return {
    ...numbered(statements),
    preferIndexes: { text: "SET LOCAL enable_seqscan = off", params: [] },
  };
}

interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly Plans?: readonly PlanNode[];
}

/** The events must be found by tenant, scope and number, and come in order without being sorted. */
function readPlan(rows: readonly SqlRow[], events: string): PollPlan {
  const text = String(Object.values(rows[0] ?? {})[0]);
  const [{ Plan: root }] = JSON.parse(text) as [{ readonly Plan: PlanNode }];
  const nodes = nodesOf(root);
  const found = nodes.find((node) => node["Relation Name"] === bareTable(events));
  const condition = found?.["Index Cond"] ?? "";
  const isServed = ["tenant", "scope", "seq"].every((column) => condition.includes(column)) &&
    !nodes.some((node) => node["Node Type"].includes("Sort"));
  return { index: isServed ? found?.["Index Name"] : undefined, text };
}

function nodesOf(node: PlanNode): readonly PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

/** The names of tables have no question mark, so each is a placeholder. */
function numbered(statements: FeedStatements): FeedStatements {
  const number = <Values>({ text, params }: Statement<Values>): Statement<Values> => {
    let last = 0;
    return { text: text.replaceAll("?", () => `$${++last}`), params };
  };
  return {
    ...statements,
    takeSeq: { update: number(statements.takeSeq.update) },
    addScope: number(statements.addScope),
    giveBackSeq: number(statements.giveBackSeq),
    readScope: number(statements.readScope),
    findEvent: number(statements.findEvent),
    insertEvent: number(statements.insertEvent),
    readVersion: number(statements.readVersion),
    updateEntity: { update: number(statements.updateEntity.update) },
    insertEntity: number(statements.insertEntity),
    readEntity: number(statements.readEntity),
    snapshot: number(statements.snapshot),
    poll: (limit) => number(statements.poll(limit)),
    explain: (limit) => number(statements.explain(limit)),
  };
}
