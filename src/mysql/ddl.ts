import type { TableDescription } from "../driver/dialect.ts";
import { bareTable } from "../driver/identifier.ts";
import { uniqueColumns } from "../driver/roles.ts";
import type { ClaimRange } from "./claim_indexes.ts";
import { columnDefinitions } from "./column_definitions.ts";
import { quote, quoteTable } from "./quote.ts";

/** The table, with the indexes that its claims read. */
export function ddl(table: TableDescription): readonly string[] {
  const unique = uniqueColumns(table);
  const lines = [
    ...Object.entries(columnDefinitions(table))
      .map(([column, definition]) => `${quote(column)} ${definition}`),
    `PRIMARY KEY (${quote(table.id.column)})`,
    ...indexes(table).map(({ name, columns }) => `KEY ${quote(name)} (${list(columns)})`),
    ...(unique.length === 0 ? [] : [`UNIQUE KEY ${uniqueName(table)} (${list(unique)})`]),
  ];
  return [
    `CREATE TABLE ${quoteTable(table.table)} (\n  ${lines.join(",\n  ")}\n) ` +
    `ENGINE = InnoDB DEFAULT CHARSET = utf8mb4`,
  ];
}

/** The statement that adds the index of the role `uniqueKey` to a table that is there. */
export function uniqueDdl(table: TableDescription): string {
  return `CREATE UNIQUE INDEX ${uniqueName(table)} ON ${quoteTable(table.table)} ` +
    `(${list(uniqueColumns(table))})`;
}

/** The statements that add, to a table that is there, the indexes that serve these ranges. */
export function indexDdl(
  table: TableDescription,
  ranges: readonly ClaimRange[],
): readonly string[] {
  return indexes(table).filter(({ serves }) => serves.some((range) => ranges.includes(range)))
    .map(({ name, columns }) =>
      `CREATE INDEX ${quote(name)} ON ${quoteTable(table.table)} (${list(columns)})`
    );
}

interface Index {
  readonly serves: readonly ClaimRange[];
  readonly name: string;
  readonly columns: readonly string[];
}

/**
 * That a time is NULL is an equality, so one index serves both rows that are leased and those that
 * are not. The head of a FIFO queue is the first of both, which takes two.
 */
function indexes(table: TableDescription): readonly Index[] {
  const { group, processedAt, lockedUntil, priority, retryAfter, id, fifo } = table;
  const index = (
    suffix: string,
    serves: readonly ClaimRange[],
    ...columns: readonly (string | undefined)[]
  ): Index => ({
    serves,
    name: `${bareTable(table.table)}_${suffix}`,
    columns: [...columns.filter((column) => column !== undefined), id.column],
  });
  const all = fifo
    ? [
      index("head", ["first"], group, processedAt, priority),
      ...(lockedUntil === undefined
        ? []
        : [index("leased", ["expired"], group, processedAt, lockedUntil)]),
    ]
    : [
      index("claim", ["free", "expired"], group, processedAt, lockedUntil, priority, retryAfter),
    ];
  // The primary key serves where nothing but the id is needed.
  return all.filter(({ columns }) => columns.length > 1);
}

function uniqueName({ table }: TableDescription): string {
  return quote(`${bareTable(table)}_unique`);
}

function list(columns: readonly string[]): string {
  return columns.map(quote).join(", ");
}
