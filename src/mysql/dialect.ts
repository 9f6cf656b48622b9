import type {
  Dialect,
  NewRow,
  PublishStatement,
  TableDescription,
  TableFacts,
} from "../driver/dialect.ts";
import type { SqlValue } from "../driver/driver.ts";
import { Columns } from "./columns.ts";
import { ddl } from "./ddl.ts";
import { leaseStatements } from "./lease_statements.ts";
import { rowLockStatements } from "./row_lock_statements.ts";
import { facts, inspect } from "./table_facts.ts";

/** How statements are written for MySQL 8.0.1 and MariaDB 10.6, and later. */
export const mysqlDialect: Dialect = {
  tableKey: (table) => table,
  ddl,
  inspect,
  facts,
  lease: leaseStatements,
  rowLock: rowLockStatements,
  publish,
};

/** The driver returns the id that the database has made as a row of the INSERT. */
function publish(table: TableDescription, facts: TableFacts): PublishStatement {
  const columns = new Columns(table, facts);
  const names = [columns.payload];
  const params: ((row: NewRow) => SqlValue)[] = [({ payload }) => payload];
  if (table.id.generatedBy === "service") {
    names.push(columns.id);
    params.push(({ id }) => id ?? null);
  }
  if (columns.attempt !== undefined) {
    names.push(columns.attempt);
    params.push(() => 1n);
  }
  return {
    insert: {
      text: `INSERT INTO ${columns.table} (${names.join(", ")}) ` +
        `VALUES (${names.map(() => "?").join(", ")})`,
      params,
    },
    readId: (row) => columns.readId(row),
  };
}
