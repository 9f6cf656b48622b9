import type { SchemaProblem } from "../errors.ts";
import type { TableDescription, TableFacts } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import type { Statement } from "../driver/statement.ts";
import { affinityOf, timeStorageOf } from "./affinity.ts";
import { columnDefinitions, ddl } from "./ddl.ts";
import { quote, quoteTable, splitTable } from "./quote.ts";

/** Lists the table's columns, each with what the checks need to know of table and id. */
export function inspect(table: TableDescription): Statement<void> {
  const [schema, name] = ["main", ...splitTable(table.table)].slice(-2) as [string, string];
  const tableOf = `FROM ${quote(schema)}.sqlite_schema WHERE lower(name) = lower(?)`;
  return {
    text: `SELECT name, type, dflt_value IS NOT NULL AS has_default, pk,
  (SELECT type ${tableOf}) AS kind,
  (SELECT sql ${tableOf}) AS sql,
  EXISTS (
    SELECT 1 FROM pragma_index_list(?, ?) AS i
    WHERE i."unique" AND NOT i.partial
      AND (SELECT lower(group_concat(name)) FROM pragma_index_info(i.name, ?)) = lower(?)
  ) AS id_unique
FROM pragma_table_xinfo(?, ?)`,
    params: [name, name, name, schema, schema, table.id.column, name, schema]
      .map((value) => () => value),
  };
}

/** What the rows of `inspect` say, and every problem they show. */
export function facts(table: TableDescription, rows: readonly SqlRow[]): TableFacts {
  const columns = new Map(rows.map((row) => [String(row.name).toLowerCase(), String(row.type)]));
  const described = Object.keys(columnDefinitions(table));
  return {
    columns: new Map(described.flatMap((name) => {
      const type = columns.get(name.toLowerCase());
      return type === undefined ? [] : [[name, type] as const];
    })),
    problems: rows.length === 0 ? [missingTable(table)] : problemsOf(table, columns, rows),
  };
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
  columns: ReadonlyMap<string, string>,
  rows: readonly SqlRow[],
): readonly SchemaProblem[] {
  const definitions = columnDefinitions(table);
  const problems: SchemaProblem[] = [];
  if (rows[0]?.kind === "view") {
    problems.push({ table: table.table, problem: "it is a view", fix: "describe its table" });
  }
  for (const [column, definition] of Object.entries(definitions)) {
    const type = columns.get(column.toLowerCase());
    const found = type === undefined
      ? missingColumn(table, column, definition)
      : wrongType(table, column, type);
    if (found !== undefined) problems.push({ table: table.table, column, ...found });
  }
  return [...problems, ...idProblems(table, columns, rows)];
}

type Finding = Pick<SchemaProblem, "problem" | "fix">;

function missingColumn(table: TableDescription, column: string, definition: string): Finding {
  const fix = column === table.id.column
    ? `name the table's id column, or create the table anew with:\n${ddl(table)[0]}`
    : `name the right column, or run: ALTER TABLE ${quoteTable(table.table)} ` +
      `ADD COLUMN ${quote(column)} ${definition.replace(" NOT NULL", "")}`;
  return { problem: "the column does not exist", fix };
}

function wrongType(table: TableDescription, column: string, type: string): Finding | undefined {
  const wanted = wantedType(table, column, type);
  if (wanted === undefined) return undefined;
  return {
    problem: `the column has the type ${type === "" ? "(none)" : type}`,
    fix: `make it ${wanted} (SQLite changes a column's type only by copying the table)`,
  };
}

/** What the column would have to be, if it is not. */
function wantedType(table: TableDescription, column: string, type: string): string | undefined {
  const affinity = affinityOf(type);
  switch (column) {
    case table.id.column:
      return ["INTEGER", "TEXT"].includes(affinity) ? undefined : "INTEGER or TEXT";
    case table.payload.column: {
      const wanted = table.payload.storage === "bytes" ? "BLOB" : "TEXT";
      return [wanted, "BLOB"].includes(affinity) ? undefined : wanted;
    }
    case table.attempt:
      return affinity === "INTEGER" ? undefined : "INTEGER";
    case table.lockedUntil:
      return timeStorageOf(type) === undefined
        ? "INTEGER (milliseconds since 1970) or TEXT (ISO 8601)"
        : undefined;
  }
}

/** An id must name one row, and must not come back after its row is deleted. */
function idProblems(
  table: TableDescription,
  columns: ReadonlyMap<string, string>,
  rows: readonly SqlRow[],
): readonly SchemaProblem[] {
  const id = table.id.column;
  const row = rows.find((row) => String(row.name).toLowerCase() === id.toLowerCase());
  if (row === undefined) return [];
  const place = { table: table.table, column: id };
  const onlyKey = rows.filter(({ pk }) => Number(pk) > 0).length === 1 && Number(row.pk) === 1;
  if (!onlyKey && !Number(row.id_unique)) {
    return [{
      ...place,
      problem: "the id is not unique",
      fix: `make it the primary key, or run: CREATE UNIQUE INDEX ` +
        `${quote(`${splitTable(table.table).at(-1)}_${id}`)} ON ${quoteTable(table.table)} (${
          quote(id)
        })`,
    }];
  }
  const type = (columns.get(id.toLowerCase()) ?? "").toUpperCase();
  if (table.id.generatedBy === "service") return [];
  if (onlyKey && type === "INTEGER") {
    if (/\bAUTOINCREMENT\b/i.test(String(row.sql))) return [];
    return [{
      ...place,
      problem: "the id lacks AUTOINCREMENT, so SQLite gives a deleted row's id to a new row",
      fix: `declare it INTEGER PRIMARY KEY AUTOINCREMENT, or generate ids: ` +
        `{ column: ${JSON.stringify(id)}, generate: () => … }`,
    }];
  }
  if (Number(row.has_default)) return [];
  return [{
    ...place,
    problem: "nothing generates the id",
    fix: `give the column a default, or generate ids: ` +
      `{ column: ${JSON.stringify(id)}, generate: () => … }`,
  }];
}
