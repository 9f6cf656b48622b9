import type { TableDescription } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import type { SchemaProblem } from "../errors.ts";
import { columnDefinitions } from "./column_definitions.ts";
import { INTEGERS, wantedTypes } from "./column_types.ts";
import { quote, quoteTable } from "./quote.ts";
import type { TableIndex } from "./table_index.ts";

/** What makes the described columns unfit for their roles, as they were found. */
export function columnProblems(
  table: TableDescription,
  found: ReadonlyMap<string, SqlRow>,
  indexes: readonly TableIndex[],
): readonly SchemaProblem[] {
  return Object.entries(columnDefinitions(table)).flatMap(([column, definition]) => {
    const row = found.get(column);
    const problem = row === undefined
      ? missingColumn(table, column, definition)
      : wrongType(table, column, definition, row) ?? wrongNull(table, column, definition, row) ??
        wrongId(table, column, row, indexes);
    return problem === undefined ? [] : [{ table: table.table, column, ...problem }];
  });
}

type Finding = Pick<SchemaProblem, "problem" | "fix">;

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
  if (wantedTypes(table, column)?.includes(String(row.type)) ?? true) return undefined;
  return {
    problem: `the column has the type ${row.full_type}`,
    fix: `run: ${modify(table, column, definition)}`,
  };
}

function wrongNull(
  table: TableDescription,
  column: string,
  definition: string,
  row: SqlRow,
): Finding | undefined {
  const mayBeNull = Boolean(Number(row.nullable));
  if (column === table.lockedUntil && !mayBeNull) {
    return {
      problem: "the column may not be NULL, which it is while nobody holds the row",
      fix: `run: ${modify(table, column, definition)}`,
    };
  }
  if (column === table.processedAt && !mayBeNull) {
    return {
      problem: "the column may not be NULL, which it is until the row is done",
      fix: `run: ${modify(table, column, definition)}`,
    };
  }
  if (column === table.uniqueKey && !mayBeNull) {
    return {
      problem:
        "the column may not be NULL, which it is for messages that are published without one",
      fix: `run: ${modify(table, column, definition)}`,
    };
  }
  if (column === table.lastError && !mayBeNull) {
    return {
      problem: "the column may not be NULL, which it is until the message has failed",
      fix: `run: ${modify(table, column, definition)}`,
    };
  }
  if (column !== table.priority || !mayBeNull) return undefined;
  return {
    problem: "the column may be NULL, and such a row would never be claimed",
    fix: `run: UPDATE ${quoteTable(table.table)} SET ${quote(column)} = 0 ` +
      `WHERE ${quote(column)} IS NULL; ` +
      modify(table, column, `${row.full_type} NOT NULL DEFAULT 0`),
  };
}

function wrongId(
  table: TableDescription,
  column: string,
  row: SqlRow,
  indexes: readonly TableIndex[],
): Finding | undefined {
  if (column !== table.id.column) return undefined;
  const isUnique = indexes.some(({ unique, size, columns: [first] }) =>
    unique && size === 1 && first?.toLowerCase() === column.toLowerCase()
  );
  if (!isUnique) {
    return {
      problem: "the id is not unique",
      fix: `make it the primary key: ALTER TABLE ${quoteTable(table.table)} ` +
        `ADD PRIMARY KEY (${quote(column)})`,
    };
  }
  const isMade = Number(row.counts) || Number(row.has_default);
  if (table.id.generatedBy === "service" || isMade && INTEGERS.includes(String(row.type))) return;
  return {
    problem: "nothing generates the id",
    fix: `make it AUTO_INCREMENT, or generate ids: ` +
      `{ column: ${JSON.stringify(column)}, generate: () => … }`,
  };
}

function modify(table: TableDescription, column: string, definition: string): string {
  return `ALTER TABLE ${quoteTable(table.table)} MODIFY COLUMN ${quote(column)} ${definition}`;
}
