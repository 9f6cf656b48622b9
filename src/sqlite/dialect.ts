import type { Dialect } from "../driver/dialect.ts";
import { advisoryLockStatements } from "./advisory_lock_statements.ts";
import { Columns } from "./columns.ts";
import { ddl } from "./ddl.ts";
import { feedStatements } from "./feed.ts";
import { leaseStatements } from "./lease_statements.ts";
import { nextDue } from "./next_due.ts";
import { publishStatement } from "./publish_statement.ts";
import { facts, inspect } from "./table_facts.ts";

/** How statements are written for SQLite 3.35 and later. */
export const sqliteDialect: Dialect = {
  placeholder: () => "?",
  encodeTime: (table, facts, role, time) => new Columns(table, facts).encodeTime(role, time),
  tableKey: (table) => table.toLowerCase().replace(/^main\./, ""),
  ddl,
  inspect,
  facts,
  lease: leaseStatements,
  advisoryLock: advisoryLockStatements,
  nextDue,
  publish: publishStatement,
  feed: feedStatements,
};
