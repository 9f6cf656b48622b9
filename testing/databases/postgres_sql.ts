import type { Session, SqlRow } from "../../src/driver/driver.ts";
import { lastStatement } from "./last_statement.ts";
import type { CopyStatements, OpenConnection, ServerSql } from "./server_sql.ts";

/** Databases of Postgres. A copy has everything that is in its template. */
export const postgresSql: ServerSql = {
  create: (name) => `CREATE DATABASE ${name}`,
  copyOf,
  connections,
  drop,
  unused: (prefix) =>
    `SELECT datname AS name FROM pg_database AS d WHERE starts_with(datname, '${prefix}') ` +
    `AND NOT EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.datid = d.oid)`,
  isRefused: (error) => Object(Object(error).cause).code === INSUFFICIENT_PRIVILEGE,
  grant,
};

function copyOf(_session: Session, template: string): Promise<CopyStatements> {
  return Promise.resolve((name) => [`CREATE DATABASE ${name} TEMPLATE ${template}`]);
}

/** What the server itself does there, such as autovacuum, keeps nobody from dropping or copying. */
async function connections(session: Session, name: string): Promise<readonly OpenConnection[]> {
  const { rows } = await session.query(
    "SELECT pid, application_name, state, query, " +
      "floor(extract(epoch FROM clock_timestamp() - state_change))::int AS seconds " +
      "FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend' ORDER BY pid",
    [name],
  );
  return rows.map((row) => ({ id: Number(row.pid), description: describe(row) }));
}

function describe({ pid, application_name, state, query, seconds }: SqlRow): string {
  const whose = application_name === "" ? "without a name" : `of "${application_name}"`;
  const doing = state === null ? "" : `, ${state} for ${seconds} s`;
  return `process ${pid} ${whose}${doing}${lastStatement(query)}`;
}

async function drop(session: Session, name: string): Promise<void> {
  await session.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
}

async function grant(session: Session): Promise<string> {
  const { rows: [row] } = await session.query("SELECT quote_ident(current_user) AS role");
  return `ALTER ROLE ${row?.role} CREATEDB`;
}

const INSUFFICIENT_PRIVILEGE = "42501";
