import type {
  Dialect,
  NewRow,
  PublishStatement,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import { Columns } from "./columns.ts";
import { ddl } from "./ddl.ts";
import { leaseStatements } from "./lease_statements.ts";
import { Parameters } from "./parameters.ts";
import { rowLockStatements } from "./row_lock_statements.ts";
import { facts, inspect } from "./table_facts.ts";

/** How statements are written for Postgres 13 and later. */
export const postgresDialect: Dialect = {
  tableKey: (table) => table.replace(/^public\./, ""),
  ddl,
  inspect,
  facts,
  lease: leaseStatements,
  rowLock: rowLockStatements,
  publish,
};

function publish(table: TableDescription, facts: TableFacts): PublishStatement {
  const columns = new Columns(table, facts);
  const parameters = new Parameters<NewRow>();
  const payload = parameters.add(({ payload }) => payload);
  const inserted: [string, string][] = [[
    columns.payload,
    columns.type("payload") === "bytea" ? `${payload}::bytea` : columns.cast("payload", payload),
  ]];
  if (table.id.generatedBy === "service") {
    inserted.push([columns.id, columns.cast("id", parameters.add(({ id }) => String(id)))]);
  }
  if (columns.attempt !== undefined) inserted.push([columns.attempt, "1"]);
  const insert = parameters.statement(
    `INSERT INTO ${columns.table} (${inserted.map(([column]) => column).join(", ")}) ` +
      `VALUES (${inserted.map(([, value]) => value).join(", ")}) ` +
      `RETURNING ${columns.id}::text AS id`,
  );
  return { insert, readId: (row) => columns.readId(row) };
}
