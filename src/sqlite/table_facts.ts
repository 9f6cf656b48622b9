import type { SchemaProblem } from "../errors.ts";
import { bareTable, splitTable } from "../driver/identifier.ts";
import type { TableDescription } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import type { Statement } from "../driver/statement.ts";
import { affinityOf, timeStorageOf } from "./affinity.ts";
import type { SqliteFacts } from "./columns.ts";
import { columnDefinitions, ddl } from "./ddl.ts";
import { missingIndexes, missingUniqueIndex } from "./missing_indexes.ts";
import { quote, quoteTable } from "./quote.ts";

/** Lists the table's columns, each with what the checks need to know of table and id. */
export function inspect(table: TableDescription): Statement<void> {
  const [schema, name] = ["main", ...splitTable(table.table)].slice(-2) as [string, string];
  const tableOf = `FROM ${quote(schema)}.sqlite_schema WHERE lower(name) = lower(?)`;
  return {
    text:
      `SELECT name, type, "notnull" AS not_null, hidden, dflt_value IS NOT NULL AS has_default, pk,
  (SELECT type ${tableOf}) AS kind,
  (SELECT sql ${tableOf}) AS sql,
  EXISTS (
    SELECT 1 FROM pragma_index_list(?, ?) AS i
    WHERE i."unique" AND NOT i.partial
      AND (SELECT lower(group_concat(name)) FROM pragma_index_info(i.name, ?)) = lower(?)
  ) AS id_unique,
  (SELECT json_group_array(json_object(
    'unique', i."unique",
    'columns', (SELECT json_group_array(lower(name)) FROM pragma_index_info(i.name, ?)),
    'only', CASE WHEN i.partial THEN
      (SELECT sql FROM ${quote(schema)}.sqlite_schema AS s WHERE s.name = i.name) END
  )) FROM pragma_index_list(?, ?) AS i) AS indexes
FROM pragma_table_xinfo(?, ?)`,
    params: [name, name, name, schema, schema, table.id.column, schema, name, schema, name, schema]
      .map((value) => () => value),
  };
}

/** What the rows of `inspect` say, and every problem they show. */
export function facts(table: TableDescription, rows: readonly SqlRow[]): SqliteFacts {
  const columns = new Map(rows.map((row) => [String(row.name).toLowerCase(), String(row.type)]));
  const written = rows.filter(({ hidden }) => Number(hidden) === 0);
  const described = Object.keys(columnDefinitions(table));
  return {
    exists: rows.length > 0,
    columns: new Map(described.flatMap((name) => {
      const type = columns.get(name.toLowerCase());
      return type === undefined ? [] : [[name, type] as const];
    })),
    problems: rows.length === 0 ? [missingTable(table)] : problemsOf(table, columns, rows),
    warnings: missingIndexes(table, rows),
    all: new Map(written.map((row) => [String(row.name), String(row.type)])),
    demanded: new Set(
      written.filter((row) => Number(row.not_null) && !Number(row.has_default) && !Number(row.pk))
        .map(({ name }) => String(name)),
    ),
    nullable: new Set(described.filter((name) => !Number(rowOf(rows, name)?.not_null))),
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
  const shape = shapeOf(String(rows[0]?.sql ?? ""));
  const problems: SchemaProblem[] = [];
  if (rows[0]?.kind === "view") {
    problems.push({ table: table.table, problem: "it is a view", fix: "describe its table" });
  }
  for (const [column, definition] of Object.entries(columnDefinitions(table))) {
    const type = columns.get(column.toLowerCase());
    const found = type === undefined
      ? missingColumn(table, column, definition)
      : wrongType(table, column, type, shape) ?? wrongNull(table, column, rows) ??
        generated(column, rows);
    if (found !== undefined) problems.push({ table: table.table, column, ...found });
  }
  const id = idProblem(table, rows, shape);
  if (id !== undefined) problems.push({ ...id, column: table.id.column });
  return [...problems, ...missingUniqueIndex(table, rows)];
}

type Finding = Pick<SchemaProblem, "problem" | "fix">;

/** What only the table's own CREATE statement tells. */
interface Shape {
  readonly autoincrement: boolean;
  readonly strict: boolean;
  readonly withoutRowid: boolean;
}

function shapeOf(sql: string): Shape {
  const code = sql.replace(/--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"/g, " ");
  const options = code.slice(code.lastIndexOf(")") + 1);
  return {
    autoincrement: /\bAUTOINCREMENT\b/i.test(code),
    strict: /\bSTRICT\b/i.test(options),
    withoutRowid: /\bWITHOUT\s+ROWID\b/i.test(options),
  };
}

function missingColumn(table: TableDescription, column: string, definition: string): Finding {
  const fix = column === table.id.column
    ? `name the table's id column, or create the table anew with:\n${ddl(table)[0]}`
    : `name the right column, or run: ALTER TABLE ${quoteTable(table.table)} ` +
      `ADD COLUMN ${quote(column)} ${definition.replace(" NOT NULL", "")}`;
  return { problem: "the column does not exist", fix };
}

function wrongType(
  table: TableDescription,
  column: string,
  type: string,
  shape: Shape,
): Finding | undefined {
  const wanted = wantedType(table, column, type, shape);
  if (wanted === undefined) return undefined;
  return {
    problem: `the column has the type ${type === "" ? "(none)" : type}`,
    fix: `make it ${wanted} (SQLite changes a column's type only by copying the table)`,
  };
}

/** What the column would have to be, if it is not. */
function wantedType(
  table: TableDescription,
  column: string,
  type: string,
  { strict }: Shape,
): string | undefined {
  const affinity = affinityOf(type);
  switch (column) {
    case table.id.column:
      return ["INTEGER", "TEXT"].includes(affinity) ? undefined : "INTEGER or TEXT";
    case table.payload?.column: {
      const wanted = table.payload?.storage === "bytes" ? "BLOB" : "TEXT";
      // A column without a type of its own takes both, but a strict BLOB takes bytes only.
      const takesBoth = strict ? type.toUpperCase() === "ANY" : affinity === "BLOB";
      return affinity === wanted || takesBoth ? undefined : wanted;
    }
    case table.attempt:
    case table.priority:
      return affinity === "INTEGER" ? undefined : "INTEGER";
    case table.group:
    case table.headers:
    case table.uniqueKey:
    case table.lastError:
      return affinity === "TEXT" ? undefined : "TEXT";
    case table.lockedUntil:
    case table.retryAfter:
    case table.processedAt:
      return timeStorageOf(type) === undefined
        ? "INTEGER (milliseconds since 1970) or TEXT (ISO 8601)"
        : undefined;
  }
}

function wrongNull(
  table: TableDescription,
  column: string,
  rows: readonly SqlRow[],
): Finding | undefined {
  const notNull = Boolean(Number(rowOf(rows, column)?.not_null));
  const copying = "(SQLite changes a column only by copying the table)";
  if (column === table.priority && !notNull) {
    return {
      problem: "the column may be NULL, and a row without a priority would never be claimed",
      fix: `declare it INTEGER NOT NULL DEFAULT 0 ${copying}`,
    };
  }
  const empty = column === table.lockedUntil
    ? "while nobody holds the row"
    : column === table.processedAt
    ? "until the row is done"
    : column === table.uniqueKey
    ? "for messages that are published without one"
    : column === table.lastError
    ? "until the message has failed"
    : undefined;
  if (empty === undefined || !notNull) return undefined;
  return {
    problem: `the column may not be NULL, which it is ${empty}`,
    fix: `declare it without NOT NULL ${copying}`,
  };
}

/** pragma_table_xinfo hides generated columns by 2 and 3. */
function generated(column: string, rows: readonly SqlRow[]): Finding | undefined {
  if (Number(rowOf(rows, column)?.hidden) < 2) return undefined;
  return { problem: "the column is generated and cannot be written", fix: "name a plain column" };
}

/** An id must name one row, and must not come back after its row is deleted. */
function idProblem(
  table: TableDescription,
  rows: readonly SqlRow[],
  shape: Shape,
): SchemaProblem | undefined {
  const id = table.id.column;
  const row = rowOf(rows, id);
  if (row === undefined) return undefined;
  const onlyKey = Number(row.pk) === 1 && rows.filter(({ pk }) => Number(pk) > 0).length === 1;
  if (!onlyKey && !Number(row.id_unique)) {
    return {
      table: table.table,
      problem: "the id is not unique",
      fix: `make it the primary key, or run: CREATE UNIQUE INDEX ` +
        `${quote(`${bareTable(table.table)}_${id}`)} ON ` +
        `${quoteTable(table.table)} (${quote(id)})`,
    };
  }
  if (table.id.generatedBy === "service") return undefined;
  const generate = `generate ids: { column: ${JSON.stringify(id)}, generate: () => … }`;
  const isRowid = onlyKey && !shape.withoutRowid && String(row.type).toUpperCase() === "INTEGER";
  if (isRowid && !shape.autoincrement) {
    return {
      table: table.table,
      problem: "the id lacks AUTOINCREMENT, so SQLite gives a deleted row's id to a new row",
      fix: `declare it INTEGER PRIMARY KEY AUTOINCREMENT, or ${generate}`,
    };
  }
  if (isRowid || Number(row.has_default)) return undefined;
  return {
    table: table.table,
    problem: "nothing generates the id",
    fix: `give the column a default, or ${generate}`,
  };
}

function rowOf(rows: readonly SqlRow[], column: string): SqlRow | undefined {
  return rows.find(({ name }) => String(name).toLowerCase() === column.toLowerCase());
}
