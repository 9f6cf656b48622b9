import type { SchemaProblem } from "../errors.ts";
import type { TableDescription, TableFacts } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import { splitTable } from "../driver/identifier.ts";
import type { Statement } from "../driver/statement.ts";
import { columnDefinitions, ddl } from "./ddl.ts";
import { quote, quoteTable } from "./quote.ts";

/** Lists the columns of the table, in the session's database unless another is named. */
export function inspect(table: TableDescription): Statement<void> {
  const [schema, name] = ["", ...splitTable(table.table)].slice(-2) as [string, string];
  return {
    text: `SELECT c.COLUMN_NAME AS name, c.DATA_TYPE AS type, c.COLUMN_TYPE AS full_type,
  c.CHARACTER_SET_NAME AS charset, c.COLLATION_NAME AS collation,
  c.IS_NULLABLE = 'YES' AS nullable,
  (c.COLUMN_DEFAULT IS NOT NULL OR c.EXTRA LIKE '%auto_increment%') AS has_default,
  t.TABLE_TYPE AS kind, t.ENGINE AS engine,
  EXISTS (
    SELECT 1 FROM information_schema.STATISTICS AS s
    WHERE s.TABLE_SCHEMA = c.TABLE_SCHEMA AND s.TABLE_NAME = c.TABLE_NAME AND s.NON_UNIQUE = 0
    GROUP BY s.INDEX_NAME
    HAVING COUNT(*) = 1 AND MAX(s.COLUMN_NAME) = c.COLUMN_NAME AND MAX(s.SUB_PART) IS NULL
  ) AS unique_alone
FROM information_schema.COLUMNS AS c JOIN information_schema.TABLES AS t
  ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME
WHERE c.TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND c.TABLE_NAME = ?
ORDER BY c.ORDINAL_POSITION`,
    params: [() => schema, () => name],
  };
}

/** What the rows of `inspect` say, and every problem they show. */
export function facts(table: TableDescription, rows: readonly SqlRow[]): TableFacts {
  const types = new Map(rows.map((row) => [String(row.name).toLowerCase(), typeOf(row)]));
  const described = Object.keys(columnDefinitions(table));
  return {
    exists: rows.length > 0,
    columns: new Map(described.flatMap((column) => {
      const type = types.get(column.toLowerCase());
      return type === undefined ? [] : [[column, type] as const];
    })),
    problems: rows.length === 0 ? [missingTable(table)] : problemsOf(table, rows),
  };
}

type Finding = Pick<SchemaProblem, "problem" | "fix">;

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

function problemsOf(
  table: TableDescription,
  rows: readonly SqlRow[],
): readonly SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  const [first] = rows;
  if (first?.kind !== "BASE TABLE") {
    problems.push({ table: table.table, problem: "it is no table", fix: "describe a table" });
  } else if (String(first.engine).toLowerCase() !== "innodb") {
    problems.push({
      table: table.table,
      problem: `its engine is ${first.engine}, which has no transactions`,
      fix: `run: ALTER TABLE ${quoteTable(table.table)} ENGINE = InnoDB`,
    });
  }
  for (const [column, definition] of Object.entries(columnDefinitions(table))) {
    const row = rows.find(({ name }) => String(name).toLowerCase() === column.toLowerCase());
    const found = row === undefined
      ? missingColumn(table, column, definition)
      : wrongType(table, column, definition, row) ?? wrongNull(table, column, definition, row) ??
        wrongId(table, column, row);
    if (found !== undefined) problems.push({ table: table.table, column, ...found });
  }
  return problems;
}

function missingColumn(table: TableDescription, column: string, definition: string): Finding {
  return {
    problem: "the column does not exist",
    fix: `name the right column, or run: ALTER TABLE ${quoteTable(table.table)} ` +
      `ADD COLUMN ${quote(column)} ${definition}`,
  };
}

function wrongType(
  table: TableDescription,
  column: string,
  definition: string,
  row: SqlRow,
): Finding | undefined {
  if (wantedTypes(table, column).includes(String(row.type))) return undefined;
  return {
    problem: `the column has the type ${row.full_type}`,
    fix: modify(table, column, definition),
  };
}

/** The types that can do for the column's role. */
function wantedTypes(table: TableDescription, column: string): readonly string[] {
  switch (column) {
    case table.id.column:
      return [...INTEGERS, "char", "varchar", "uuid"];
    case table.payload.column:
      return table.payload.storage === "bytes"
        ? ["longblob", "mediumblob", "blob", "varbinary"]
        : ["longtext", "mediumtext", "text", "varchar", "json"];
    case table.attempt:
      return INTEGERS;
    default:
      return ["datetime", "timestamp", "bigint"];
  }
}

/** A row that nobody has claimed has no expiry. */
function wrongNull(
  table: TableDescription,
  column: string,
  definition: string,
  row: SqlRow,
): Finding | undefined {
  if (column !== table.lockedUntil || Number(row.nullable)) return undefined;
  return {
    problem: "the column may not be NULL, which it is while nobody holds the row",
    fix: modify(table, column, definition),
  };
}

function wrongId(table: TableDescription, column: string, row: SqlRow): Finding | undefined {
  if (column !== table.id.column) return undefined;
  if (!Number(row.unique_alone)) {
    return {
      problem: "the id is not unique",
      fix: `make it the primary key: ALTER TABLE ${quoteTable(table.table)} ` +
        `ADD PRIMARY KEY (${quote(column)})`,
    };
  }
  const generated = String(row.full_type) !== "" && Number(row.has_default) &&
    INTEGERS.includes(String(row.type));
  if (table.id.generatedBy === "service" || generated) return undefined;
  return {
    problem: "nothing generates the id",
    fix: `make it AUTO_INCREMENT, or generate ids: ` +
      `{ column: ${JSON.stringify(column)}, generate: () => … }`,
  };
}

function modify(table: TableDescription, column: string, definition: string): string {
  return `run: ALTER TABLE ${quoteTable(table.table)} MODIFY COLUMN ${quote(column)} ${definition}`;
}

const INTEGERS: readonly string[] = ["bigint", "int", "mediumint", "smallint", "tinyint"];
