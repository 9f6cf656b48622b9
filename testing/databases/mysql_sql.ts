import type { Session, SqlRow } from "../../src/driver/driver.ts";
import { quoteName } from "../../src/driver/identifier.ts";
import { lastStatement } from "./last_statement.ts";
import { copyOf } from "./mysql_copy.ts";
import type { OpenConnection, ServerSql } from "./server_sql.ts";

/** Databases of MySQL and MariaDB, which have no templates: tables and their rows are copied. */
export const mysqlSql: ServerSql = {
  create: (name) => `CREATE DATABASE ${name}`,
  copyOf,
  connections,
  drop,
  unused: (prefix) =>
    `SELECT schema_name AS name FROM information_schema.schemata ` +
    `WHERE LEFT(schema_name, ${prefix.length}) = '${prefix}' AND schema_name NOT IN ` +
    `(SELECT db FROM information_schema.processlist WHERE db IS NOT NULL)`,
  isRefused: (error) => Object(Object(error).cause).errno === DATABASE_ACCESS_DENIED,
  grant,
};

async function connections(session: Session, name: string): Promise<readonly OpenConnection[]> {
  const { rows } = await session.query(
    "SELECT id, user, command, time AS seconds, info FROM information_schema.processlist " +
      "WHERE db = ? ORDER BY id",
    [name],
  );
  const connections: OpenConnection[] = [];
  for (const row of rows) {
    const id = Number(row.id);
    const text = row.info ?? await lastTextOf(session, id);
    connections.push({ id, description: describe(row, text) });
  }
  return connections;
}

/** Of a connection that is asleep only the performance schema knows, for those who may read it. */
async function lastTextOf(session: Session, id: number): Promise<SqlRow[string] | undefined> {
  try {
    const { rows: [row] } = await session.query(
      "SELECT s.sql_text AS text FROM performance_schema.threads AS t " +
        "JOIN performance_schema.events_statements_current AS s ON s.thread_id = t.thread_id " +
        "WHERE t.processlist_id = ?",
      [id],
    );
    return row?.text;
  } catch {
    return undefined;
  }
}

function describe(
  { id, user, command, seconds }: SqlRow,
  text: SqlRow[string] | undefined,
): string {
  return `connection ${id} of "${user}", ${command} for ${seconds} s${lastStatement(text)}`;
}

/** DROP would wait for locks of transactions that are open. */
async function drop(
  session: Session,
  name: string,
  connections: readonly OpenConnection[],
): Promise<void> {
  // One that is gone by itself meanwhile is an error, and as good.
  for (const { id } of connections) await session.query(`KILL ${id}`).catch(() => {});
  await session.query(`DROP DATABASE IF EXISTS ${name}`);
}

async function grant(session: Session, prefix: string): Promise<string> {
  const { rows: [row] } = await session.query("SELECT CURRENT_USER() AS user");
  const [, user = "", host = "%"] = /^(.*)@(.*)$/.exec(String(row?.user)) ?? [];
  const databases = quoteName(`${prefix.replaceAll("_", "\\_")}%`, "`");
  return `GRANT ALL PRIVILEGES ON ${databases}.* TO '${user}'@'${host}'`;
}

const DATABASE_ACCESS_DENIED = 1044;
