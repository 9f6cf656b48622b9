import type { Dialect } from "../driver/dialect.ts";
import { advisoryLockStatements } from "./advisory_lock_statements.ts";
import { Columns } from "./columns.ts";
import { ddl } from "./ddl.ts";
import { feedStatements } from "./feed.ts";
import { leaseStatements } from "./lease_statements.ts";
import { NOTIFY } from "./listen.ts";
import { nextDue } from "./next_due.ts";
import { publishStatement } from "./publish_statement.ts";
import { rowLockStatements } from "./row_lock_statements.ts";
import { facts, inspect } from "./table_facts.ts";
import { tableKey } from "./table_key.ts";

/** How statements are written for Postgres 13 and later. */
export const postgresDialect: Dialect = {
  placeholder: (number) => `$${number}`,
  encodeTime: (table, facts, role, time) => new Columns(table, facts).encodeTime(role, time),
  notify: { text: NOTIFY, params: [({ channel }) => channel, ({ payload }) => payload] },
  endConnection: "SELECT pg_terminate_backend(pg_backend_pid())",
  tableKey,
  ddl,
  inspect,
  facts,
  lease: leaseStatements,
  rowLock: rowLockStatements,
  advisoryLock: advisoryLockStatements,
  nextDue,
  publish: publishStatement,
  feed: feedStatements,
};
