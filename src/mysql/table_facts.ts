import type { TableDescription, TableFacts } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import { splitTable } from "../driver/identifier.ts";
import type { Statement } from "../driver/statement.ts";
import type { SchemaProblem } from "../errors.ts";
import { type ClaimIndexes, claimIndexes } from "./claim_indexes.ts";
import { columnDefinitions } from "./column_definitions.ts";
import { columnProblems } from "./column_problems.ts";
import { columnWarnings } from "./column_warnings.ts";
import { missingUnique } from "../driver/missing_unique.ts";
import { ddl, uniqueDdl } from "./ddl.ts";
import { missingIndexes } from "./missing_indexes.ts";
import { quoteTable } from "./quote.ts";
import { INDEXES_SQL, readIndexes } from "./table_index.ts";

/** What statements need to know of a table, besides what is wrong with it. */
export interface MysqlFacts extends TableFacts {
  /** The described columns that may be NULL. */
  readonly nullable?: ReadonlySet<string>;
  /** The indexes that its claims read. */
  readonly indexes?: ClaimIndexes;
  /** The names of its unique indexes. */
  readonly uniqueIndexes?: readonly string[];
}

/** Lists the columns of the table, in the session's database unless another is named. */
export function inspect(table: TableDescription): Statement<void> {
  const [schema, name] = ["", ...splitTable(table.table)].slice(-2) as [string, string];
  return {
    text: `SELECT c.COLUMN_NAME AS name, c.DATA_TYPE AS type, c.COLUMN_TYPE AS full_type,
  c.CHARACTER_SET_NAME AS charset, c.COLLATION_NAME AS collation,
  c.IS_NULLABLE = 'YES' AS nullable, c.EXTRA LIKE '%auto_increment%' AS counts,
  c.COLUMN_DEFAULT IS NOT NULL AS has_default,
  t.TABLE_TYPE AS kind, t.ENGINE AS engine, VERSION() LIKE '%MariaDB%' AS mariadb,
  ${INDEXES_SQL} AS indexes
FROM information_schema.COLUMNS AS c JOIN information_schema.TABLES AS t
  ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME
WHERE c.TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND c.TABLE_NAME = ?
ORDER BY c.ORDINAL_POSITION`,
    params: [() => schema, () => name],
  };
}

/** What the rows of `inspect` say, and every problem they show. */
export function facts(table: TableDescription, rows: readonly SqlRow[]): MysqlFacts {
  const [first] = rows;
  if (first === undefined) {
    return { exists: false, columns: new Map(), problems: [missingTable(table)], warnings: [] };
  }
  const found = foundColumns(table, rows);
  const all = readIndexes(String(first.indexes ?? "[]"));
  const unique = all.filter((index) => index.unique);
  const indexes = claimIndexes(table, all);
  const problems = [
    ...tableProblems(table, first),
    ...columnProblems(table, found, all),
    ...missingUnique(
      table,
      new Set([...found.keys()].map((name) => name.toLowerCase())),
      unique.map(({ columns, size }) => columns.slice(0, size)),
      table.uniqueKey && uniqueDdl(table),
    ),
  ];
  const missing = missingIndexes(table, found, indexes);
  // MariaDB keeps every row locked that it has read, for as long as a handler works.
  const isRefused = table.form === "row lock" && Number(first.mariadb) === 1;
  return {
    exists: true,
    columns: new Map([...found].map(([name, row]) => [name, typeOf(row)])),
    nullable: new Set([...found].flatMap(([name, row]) => Number(row.nullable) ? [name] : [])),
    indexes,
    all: new Map(rows.map((row) => [String(row.name), String(row.full_type)])),
    demanded: new Set(
      rows.filter((row) => !Number(row.nullable) && !Number(row.has_default) && !Number(row.counts))
        .map(({ name }) => String(name)),
    ),
    uniqueIndexes: unique.map(({ name }) => name),
    problems: isRefused ? [...problems, ...missing] : problems,
    warnings: [...columnWarnings(table, found), ...(isRefused ? [] : missing)],
  };
}

/** The described columns that are there, by name as described: the server ignores its case. */
function foundColumns(
  table: TableDescription,
  rows: readonly SqlRow[],
): ReadonlyMap<string, SqlRow> {
  const byName = new Map(rows.map((row) => [String(row.name).toLowerCase(), row]));
  return new Map(
    Object.keys(columnDefinitions(table)).flatMap((name) => {
      const row = byName.get(name.toLowerCase());
      return row === undefined ? [] : [[name, row] as const];
    }),
  );
}

/** The full type, with character set and collation where it has them, as a column is declared. */
function typeOf({ full_type, charset, collation }: SqlRow): string {
  return charset === null
    ? String(full_type)
    : `${full_type} CHARACTER SET ${charset} COLLATE ${collation}`;
}

function missingTable(table: TableDescription): SchemaProblem {
  return {
    table: table.table,
    problem: "the table does not exist",
    fix: `add broker.createTables(...) for it, or run:\n${ddl(table).join(";\n")};`,
  };
}

function tableProblems(table: TableDescription, { kind, engine }: SqlRow): SchemaProblem[] {
  const found = { table: table.table };
  if (kind !== "BASE TABLE") {
    return [{ ...found, problem: "it is no table", fix: "describe a table" }];
  }
  if (String(engine).toLowerCase() === "innodb") return [];
  return [{
    ...found,
    problem: `its engine is ${engine}, which has no transactions`,
    fix: `run: ALTER TABLE ${quoteTable(table.table)} ENGINE = InnoDB`,
  }];
}
