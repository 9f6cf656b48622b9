import type { TableDescription } from "../driver/dialect.ts";
import { bareTable } from "../driver/identifier.ts";
import { quote, quoteIndex, quoteTable } from "./quote.ts";

/** The table, and the indexes that its claims read. */
export function ddl(table: TableDescription): readonly string[] {
  const columns = Object.entries(columnDefinitions(table))
    .map(([column, definition]) => `  ${quote(column)} ${definition}`);
  return [
    `CREATE TABLE ${quoteTable(table.table)} (\n${columns.join(",\n")}\n)`,
    ...claimIndexes(table).map(({ text }) => text),
  ];
}

/** How each column is declared. */
export function columnDefinitions(table: TableDescription): Readonly<Record<string, string>> {
  const definitions: Record<string, string> = {
    // Without AUTOINCREMENT the highest id is used again after its row is deleted, and a late
    // settle could hit the new row.
    [table.id.column]: table.id.generatedBy === "service"
      ? "TEXT NOT NULL PRIMARY KEY"
      : "INTEGER PRIMARY KEY AUTOINCREMENT",
    [table.payload.column]: table.payload.storage === "bytes" ? "BLOB NOT NULL" : "TEXT NOT NULL",
  };
  const define = (column: string | undefined, definition: string): void => {
    if (column !== undefined) definitions[column] ??= definition;
  };
  define(table.group, "TEXT NOT NULL");
  define(table.priority, "INTEGER NOT NULL DEFAULT 0");
  // Times are milliseconds since 1970. A row that is inserted without one is due at once.
  define(table.retryAfter, "INTEGER NOT NULL DEFAULT 0");
  define(table.attempt, "INTEGER NOT NULL DEFAULT 1");
  define(table.processedAt, "INTEGER");
  define(table.lockedUntil, "INTEGER");
  for (const part of table.lockKey ?? []) {
    if (typeof part !== "string") define(part.column, "TEXT NOT NULL DEFAULT ''");
  }
  return definitions;
}

/** An index that claims read. */
export interface ClaimIndex {
  /** The columns by which its rows are found, the leading ones in any order. */
  readonly equal: readonly string[];
  /** The columns after those, by which the rows are ordered. */
  readonly then: readonly string[];
  /** The columns that are NULL in all of its rows. */
  readonly onlyNull: readonly string[];
  /** The statement that creates it. */
  readonly text: string;
}

/** The indexes of a claim, beside the primary key. */
export function claimIndexes(table: TableDescription): readonly ClaimIndex[] {
  const { group, fifo, priority, retryAfter, processedAt, lockedUntil } = table;
  const done = present(processedAt);
  const id = table.id.column;
  const leased = lockedUntil === undefined
    ? []
    : [index(table, "leased", present(group), [lockedUntil, id], done, lockedUntil)];
  if (fifo) return [index(table, "head", present(group), present(priority, id), done), ...leased];
  const roles = present(group, priority, retryAfter, processedAt, lockedUntil);
  if (roles.length === 0) return [];
  const onlyNull = present(lockedUntil, processedAt);
  return [
    index(table, "free", present(group, priority), present(retryAfter, id), onlyNull),
    ...leased,
  ];
}

function index(
  { table }: TableDescription,
  suffix: string,
  equal: readonly string[],
  then: readonly string[],
  onlyNull: readonly string[],
  notNull?: string,
): ClaimIndex {
  const columns = [...equal, ...then].map(quote).join(", ");
  const conditions = [
    ...present(notNull).map((column) => `${quote(column)} IS NOT NULL`),
    ...onlyNull.map((column) => `${quote(column)} IS NULL`),
  ];
  const only = conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`;
  const text = `CREATE INDEX ${quoteIndex(table, suffix)} ON ${quote(bareTable(table))} ` +
    `(${columns})${only}`;
  return { equal, then, onlyNull, text };
}

function present(...names: readonly (string | undefined)[]): readonly string[] {
  return names.filter((name) => name !== undefined);
}
