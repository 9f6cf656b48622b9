import type { SchemaProblem } from "../errors.ts";
import type { TableDescription, TableFacts } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import type { Statement } from "../driver/statement.ts";
import { columnDefinitions, ddl } from "./ddl.ts";
import { missingIndexes, missingUniqueIndex } from "./missing_indexes.ts";
import { quote, quoteTable } from "./quote.ts";

/** What the checks found, as the statements need it. */
export interface PostgresFacts extends TableFacts {
  /** The columns that may be NULL; all of them, if nothing is known. */
  readonly nullable?: ReadonlySet<string>;
  /** How many characters the column of the role `lastError` holds, where that is limited. */
  readonly errorLength?: number;
}

/**
 * Lists the columns of the table, and its indexes with the first of them, if it can be found by this
 * name. Types are named such that a cast to one leaves the length of a value as it is: `bpchar` for
 * `character`, which would cut it to one. Names of one word pass whatever the client of a caller's
 * transaction makes of names.
 */
export function inspect(table: TableDescription): Statement<void> {
  return {
    text: `SELECT a.attname::text AS name, format_type(a.atttypid, -1) AS type,
  a.attnotnull::int AS required, nullif(a.atttypmod, -1) - 4 AS length, (a.atthasdef OR a.attidentity <> '')::int AS defaulted,
  c.relkind::text AS kind, serial.name AS sequence, (
    SELECT format_type(s.seqtypid, -1) FROM pg_sequence AS s
    WHERE s.seqrelid = to_regclass(serial.name)
  ) AS counter,
  (EXISTS (
    SELECT FROM pg_index AS i
    WHERE i.indrelid = c.oid AND i.indisunique AND i.indpred IS NULL
      AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
  ))::int AS alone,
  CASE WHEN row_number() OVER (ORDER BY a.attnum) = 1 THEN (
    SELECT json_agg(json_build_object(
      'columns', (
        SELECT json_agg(k.attname::text ORDER BY n.place)
        FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS n(attnum, place)
        LEFT JOIN pg_attribute AS k ON k.attrelid = i.indrelid AND k.attnum = n.attnum
        WHERE n.place <= i.indnkeyatts
      ),
      'only', pg_get_expr(i.indpred, i.indrelid),
      'unique', i.indisunique
    )) FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisvalid
  )::text END AS indexes
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
CROSS JOIN LATERAL (
  SELECT CASE a.attidentity WHEN '' THEN pg_get_serial_sequence($1::text, a.attname::text) END AS name
) AS serial
WHERE c.oid = to_regclass($1::text) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum`,
    params: [() => quoteTable(table.table)],
  };
}

/** What the rows of `inspect` say, and every problem they show. */
export function facts(table: TableDescription, rows: readonly SqlRow[]): PostgresFacts {
  const columns = new Map(rows.map((row) => [String(row.name), String(row.type)]));
  return {
    exists: rows.length > 0,
    columns,
    problems: rows.length === 0 ? [missingTable(table)] : problemsOf(table, columns, rows),
    warnings: [...narrowId(table, columns, rows), ...missingIndexes(table, rows)],
    errorLength: lengthOf(rows, table.lastError),
    all: columns,
    demanded: new Set(
      rows.filter((row) => Number(row.required) && !Number(row.defaulted))
        .map(({ name }) => String(name)),
    ),
    nullable: new Set(rows.filter((row) => !Number(row.required)).map(({ name }) => String(name))),
  };
}

function lengthOf(rows: readonly SqlRow[], column: string | undefined): number | undefined {
  const row = rows.find(({ name, type }) => name === column && type === "character varying");
  return row?.length === null || row === undefined ? undefined : Number(row.length);
}

type Finding = Pick<SchemaProblem, "problem" | "fix">;

function missingTable(table: TableDescription): SchemaProblem {
  return {
    table: table.table,
    problem: "the table does not exist",
    fix: `set the search path to its schema, add broker.createTables(...) for it, or run:\n` +
      `${ddl(table).join(";\n")};`,
  };
}

function problemsOf(
  table: TableDescription,
  columns: ReadonlyMap<string, string>,
  rows: readonly SqlRow[],
): readonly SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  if (!["r", "p"].includes(String(rows[0]?.kind))) {
    problems.push({ table: table.table, problem: "it is no table", fix: "describe a table" });
  }
  for (const [column, definition] of Object.entries(columnDefinitions(table))) {
    const type = columns.get(column);
    const found = type === undefined
      ? missingColumn(table, column, definition)
      : wrongType(table, column, type) ?? wrongNull(table, column, rows);
    if (found !== undefined) problems.push({ table: table.table, column, ...found });
  }
  const id = idProblem(table, rows.find(({ name }) => name === table.id.column));
  if (id !== undefined) problems.push({ table: table.table, column: table.id.column, ...id });
  return [...problems, ...missingUniqueIndex(table, rows)];
}

function missingColumn(table: TableDescription, column: string, definition: string): Finding {
  return {
    problem: "the column does not exist",
    fix: `name the right column (names are case-sensitive), or run: ` +
      `ALTER TABLE ${quoteTable(table.table)} ADD COLUMN ${quote(column)} ${definition}`,
  };
}

function wrongType(table: TableDescription, column: string, type: string): Finding | undefined {
  const wanted = wantedTypes(table, column);
  if (wanted === undefined || wanted.includes(type)) return undefined;
  return {
    problem: `the column has the type ${type}`,
    fix: `make it ${wanted.join(" or ")}: ALTER TABLE ${quoteTable(table.table)} ` +
      `ALTER COLUMN ${quote(column)} TYPE ${wanted[0]}`,
  };
}

/** The types that can do for the column's role, the best first; any, where it plays none. */
function wantedTypes(
  table: TableDescription,
  column: string,
): readonly string[] | undefined {
  switch (column) {
    case table.id.column:
      return ["bigint", "integer", "smallint", "uuid", "text", "character varying"];
    case table.payload?.column:
      return table.payload?.storage === "bytes"
        ? ["bytea"]
        : ["text", "jsonb", "json", "character varying"];
    case table.headers:
      return ["text", "jsonb", "json", "character varying"];
    case table.partitionKey:
      return ["text", "character varying", "bigint", "integer", "smallint", "uuid"];
    case table.attempt:
    case table.priority:
      return ["integer", "bigint", "smallint"];
    case table.group:
    case table.uniqueKey:
    case table.lastError:
      return ["text", "character varying"];
    case table.lockedUntil:
    case table.retryAfter:
    case table.processedAt:
      return ["timestamp with time zone", "bigint"];
  }
}

function wrongNull(
  table: TableDescription,
  column: string,
  rows: readonly SqlRow[],
): Finding | undefined {
  const notNull = Boolean(Number(rows.find(({ name }) => name === column)?.required));
  const [target, name] = [quoteTable(table.table), quote(column)];
  const alter = `ALTER TABLE ${target} ALTER COLUMN ${name}`;
  if (column === table.priority && !notNull) {
    return {
      problem: "the column may be NULL, and a row without a priority would never be claimed",
      fix: `run: UPDATE ${target} SET ${name} = 0 WHERE ${name} IS NULL; ` +
        `${alter} SET DEFAULT 0, ALTER COLUMN ${name} SET NOT NULL`,
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
    fix: `run: ${alter} DROP NOT NULL`,
  };
}

/**
 * Ids that the database generates run out, if they are narrow. The sequence of an identity column goes
 * with the column's type; that of a `serial` column has a type of its own, which has to be altered too.
 */
function narrowId(
  table: TableDescription,
  columns: ReadonlyMap<string, string>,
  rows: readonly SqlRow[],
): readonly SchemaProblem[] {
  const { column } = table.id;
  const row = rows.find(({ name }) => name === column);
  const [own, sequence] = [columns.get(column) ?? "", String(row?.counter ?? "")];
  const narrowest = NARROW.find(({ type }) => type === own || type === sequence);
  if (narrowest === undefined || !Number(row?.defaulted)) return [];
  const isNarrow = (found: string): boolean => NARROW.some(({ type }) => type === found);
  const fixes = [
    ...(isNarrow(own)
      ? [`ALTER TABLE ${quoteTable(table.table)} ALTER COLUMN ${quote(column)} TYPE bigint`]
      : []),
    ...(isNarrow(sequence) ? [`ALTER SEQUENCE ${row?.sequence} AS bigint`] : []),
  ];
  return [{
    table: table.table,
    column,
    problem: `the id, ${narrowest.type}, runs out after ${narrowest.most} rows`,
    fix: `run: ${fixes.join("; ")}`,
  }];
}

/** The narrowest first. */
const NARROW = [{ type: "smallint", most: "32,767" }, { type: "integer", most: "2,147,483,647" }];

function idProblem(table: TableDescription, row: SqlRow | undefined): Finding | undefined {
  if (row === undefined) return undefined;
  const [target, id] = [quoteTable(table.table), quote(table.id.column)];
  if (!Number(row.alone)) {
    return {
      problem: "the id is not unique",
      fix: `make it the primary key: ALTER TABLE ${target} ADD PRIMARY KEY (${id})`,
    };
  }
  if (table.id.generatedBy === "service" || Number(row.defaulted)) return undefined;
  return {
    problem: "nothing generates the id",
    fix: `give the column a default, or generate ids: ` +
      `{ column: ${JSON.stringify(table.id.column)}, generate: () => … }`,
  };
}
