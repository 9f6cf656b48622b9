import type { Dialect } from "../driver/dialect.ts";
import { advisoryLockStatements } from "./advisory_lock_statements.ts";
import { Columns } from "./columns.ts";
import { ddl } from "./ddl.ts";
import { encodeTime } from "./encode_time.ts";
import { feedStatements } from "./feed.ts";
import { leaseStatements } from "./lease_statements.ts";
import { nextDue } from "./next_due.ts";
import { publishStatement } from "./publish_statement.ts";
import { rowLockStatements } from "./row_lock_statements.ts";
import { facts, inspect } from "./table_facts.ts";
import { tableKey } from "./table_key.ts";

/** How statements are written for MySQL 8.0.1 and MariaDB 10.6, and later. */
export const mysqlDialect: Dialect = {
  placeholder: () => "?",
  encodeTime: (table, facts, role, time) => encodeTime(new Columns(table, facts), role, time),
  setClock: (time) => time < LATEST ? `SET timestamp = ${time / 1000}` : undefined,
  endConnection: "KILL CONNECTION_ID()",
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

/** The end of what MariaDB 10 takes: 2038-01-19T03:14:08Z. */
const LATEST = 2 ** 31 * 1000;
