import type { Session, SqlRow, SqlValue } from "../../src/driver/driver.ts";
import { quoteName } from "../../src/driver/identifier.ts";
import type { CopyStatements } from "./server_sql.ts";

/**
 * What makes a copy of a database of MySQL or MariaDB: its character set, its tables with all that
 * belongs to them, foreign keys included, and their rows.
 *
 * @returns `undefined` where there is anything else in it: a view, trigger, routine, event, sequence
 */
export async function copyOf(
  session: Session,
  template: string,
): Promise<CopyStatements | undefined> {
  if (await hasMoreThanTables(session, template)) return undefined;
  await session.query("SET SESSION sql_quote_show_create = 1");
  const tables: CopyStatements[] = [];
  for (const table of await tablesOf(session, template)) {
    tables.push(await copyOfTable(session, template, table));
  }
  const options = await optionsOf(session, template);
  return (name) => [
    `CREATE DATABASE ${name} ${options}`,
    // A table may refer to one that comes later, and a row have the key 0.
    "SET SESSION foreign_key_checks = 0",
    "SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')",
    ...tables.flatMap((statements) => statements(name)),
  ];
}

async function hasMoreThanTables(session: Session, template: string): Promise<boolean> {
  const counts = OTHERS.map((from) => `(SELECT count(*) FROM information_schema.${from} = ?)`);
  const { rows: [row] } = await session.query(
    `SELECT ${counts.join(" + ")} AS others`,
    OTHERS.map(() => template),
  );
  return Number(row?.others) > 0;
}

const OTHERS = [
  "tables WHERE table_type <> 'BASE TABLE' AND table_schema",
  "triggers WHERE trigger_schema",
  "routines WHERE routine_schema",
  "events WHERE event_schema",
];

async function tablesOf(session: Session, template: string): Promise<string[]> {
  return await column(
    session,
    "SELECT table_name AS value FROM information_schema.tables WHERE table_schema = ? " +
      "ORDER BY table_name",
    [template],
  );
}

async function copyOfTable(
  session: Session,
  template: string,
  table: string,
): Promise<CopyStatements> {
  const quoted = quoteName(table, "`");
  const source = `${template}.${quoted}`;
  const { rows: [row] } = await session.query(`SHOW CREATE TABLE ${source}`);
  const definition = String(row?.["Create Table"]).slice(`CREATE TABLE ${quoted}`.length);
  const { rows } = await session.query(`SELECT 1 FROM ${source} LIMIT 1`);
  const columns = await storedColumns(session, template, table);
  return (name) => {
    const create = `CREATE TABLE ${name}.${quoted}${definition}`;
    if (rows.length === 0) return [create];
    return [create, `INSERT INTO ${name}.${quoted} (${columns}) SELECT ${columns} FROM ${source}`];
  };
}

/** Those that can be written: what is generated is generated anew. */
async function storedColumns(session: Session, template: string, table: string): Promise<string> {
  const names = await column(
    session,
    "SELECT column_name AS value FROM information_schema.columns WHERE table_schema = ? " +
      "AND table_name = ? AND COALESCE(generation_expression, '') = '' ORDER BY ordinal_position",
    [template, table],
  );
  return names.map((name) => quoteName(name, "`")).join(", ");
}

async function optionsOf(session: Session, template: string): Promise<string> {
  const { rows: [row] } = await session.query(
    "SELECT default_character_set_name AS charset, default_collation_name AS collation " +
      "FROM information_schema.schemata WHERE schema_name = ?",
    [template],
  );
  const { charset, collation } = row as SqlRow;
  return `CHARACTER SET ${charset} COLLATE ${collation}`;
}

async function column(
  session: Session,
  text: string,
  params: readonly SqlValue[],
): Promise<string[]> {
  return (await session.query(text, params)).rows.map(({ value }) => String(value));
}
