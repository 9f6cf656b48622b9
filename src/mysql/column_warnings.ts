import type { TableDescription } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import type { SchemaProblem } from "../errors.ts";
import { quote, quoteTable } from "./quote.ts";

/** What is fit for the roles of the described columns, but not for long, or not for every value. */
export function columnWarnings(
  table: TableDescription,
  found: ReadonlyMap<string, SqlRow>,
): readonly SchemaProblem[] {
  const blurredColumns = [
    ...blurred(table, found, table.group, "names of queues", "such queues share their rows"),
    ...blurred(table, found, table.uniqueKey, "keys", "such messages count as one"),
  ];
  return [...narrowId(table, found), ...blurredColumns];
}

function narrowId(
  table: TableDescription,
  found: ReadonlyMap<string, SqlRow>,
): readonly SchemaProblem[] {
  const row = found.get(table.id.column);
  const bits = BITS[String(row?.type)];
  if (!Number(row?.counts) || bits === undefined) return [];
  const unsigned = String(row?.full_type).includes("unsigned");
  const most = 2 ** (unsigned ? bits : bits - 1) - 1;
  return [{
    table: table.table,
    column: table.id.column,
    problem: `the id, ${row?.full_type}, runs out after ${most.toLocaleString("en-US")} rows`,
    fix: `run: ${modify(table, table.id.column, "BIGINT NOT NULL AUTO_INCREMENT")}`,
  }];
}

function blurred(
  table: TableDescription,
  found: ReadonlyMap<string, SqlRow>,
  column: string | undefined,
  values: string,
  consequence: string,
): readonly SchemaProblem[] {
  const row = found.get(column ?? "");
  const collation = String(row?.collation ?? "binary");
  if (column === undefined || EXACT.test(collation)) return [];
  const definition = `${row?.full_type} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin` +
    (Number(row?.nullable) ? "" : " NOT NULL");
  return [{
    table: table.table,
    column,
    problem: `its collation, ${collation}, takes some different ${values} for equal, ` +
      `and ${consequence}`,
    fix: `run: ${modify(table, column, definition)}`,
  }];
}

function modify(table: TableDescription, column: string, definition: string): string {
  return `ALTER TABLE ${quoteTable(table.table)} MODIFY COLUMN ${quote(column)} ${definition}`;
}

const BITS: Readonly<Record<string, number>> = { int: 32, mediumint: 24, smallint: 16, tinyint: 8 };
/** By bytes, or at least by accent and case. */
const EXACT = /(^|_)(bin|binary|as_cs|cs)$/;
