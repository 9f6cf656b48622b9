import type {
  Dialect,
  LeaseStatements,
  NewRow,
  PublishStatement,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import type { Statement } from "../driver/statement.ts";
import { ddl } from "./ddl.ts";
import { leaseStatements, readId } from "./lease_statements.ts";
import { quote, quoteTable } from "./quote.ts";
import { facts, inspect } from "./table_facts.ts";

/** How statements are written for SQLite 3.35 and later. */
export const sqliteDialect: Dialect = {
  tableKey: (table) => table.toLowerCase().replace(/^main\./, ""),
  ddl,
  inspect,
  facts,
  lease(table: TableDescription, facts: TableFacts): LeaseStatements {
    return leaseStatements(table, facts);
  },
  publish,
};

function publish(table: TableDescription): PublishStatement {
  const columns = [table.payload.column];
  const params: Statement<NewRow>["params"][number][] = [({ payload }) => payload];
  if (table.id.generatedBy === "service") {
    columns.push(table.id.column);
    params.push(({ id }) => id ?? null);
  }
  if (table.attempt !== undefined) {
    columns.push(table.attempt);
    params.push(() => 1n);
  }
  const insert: Statement<NewRow> = {
    text: `INSERT INTO ${quoteTable(table.table)} (${columns.map(quote).join(", ")}) ` +
      `VALUES (${columns.map(() => "?").join(", ")}) RETURNING ${quote(table.id.column)} AS id`,
    params,
  };
  return { insert, readId };
}
