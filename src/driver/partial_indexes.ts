import type { TableDescription } from "./dialect.ts";
import { quoteName } from "./identifier.ts";

/** An index that claims read, on a database whose indexes may hold only some of the rows. */
export interface PartialIndex {
  /** What its name ends with. */
  readonly suffix: string;
  /** The columns by which its rows are found, the leading ones in any order. */
  readonly equal: readonly string[];
  /** The columns after those, by which the rows are ordered. */
  readonly then: readonly string[];
  /** The columns that are NULL in all of its rows. */
  readonly onlyNull: readonly string[];
  /** Its columns and its rows, as they stand in the statement that creates it. */
  readonly definition: string;
}

/** The indexes of a claim, beside the primary key. */
export function partialIndexes(table: TableDescription): readonly PartialIndex[] {
  const { group, fifo, priority, retryAfter, processedAt, lockedUntil } = table;
  const done = present(processedAt);
  const id = table.id.column;
  const leased = lockedUntil === undefined
    ? []
    : [index("leased", present(group), [lockedUntil, id], done, lockedUntil)];
  if (fifo) return [index("head", present(group), present(priority, id), done), ...leased];
  const roles = present(group, priority, retryAfter, processedAt, lockedUntil);
  if (roles.length === 0) return [];
  const onlyNull = present(lockedUntil, processedAt);
  return [index("free", present(group, priority), present(retryAfter, id), onlyNull), ...leased];
}

/** An index of a table as the database lists it. */
export interface FoundIndex {
  /** Its columns; NULL for an expression. */
  readonly columns: readonly (string | null)[];
  /** Whether it holds only rows of which this holds. */
  demands(column: string, test: "IS NULL" | "IS NOT NULL"): boolean;
}

/**
 * Whether an index serves what another is wanted for. A column that is NULL in all rows of the claim
 * must be one of the leading columns, unless the index holds only such rows; one that holds only other
 * rows is of no use. Rows of one time are few: that they are sorted by id costs little.
 *
 * @param endsWithId whether every index of the database ends with the row's id
 */
export function serves(
  { columns, demands }: FoundIndex,
  { equal, then, onlyNull }: PartialIndex,
  endsWithId: boolean,
): boolean {
  if (onlyNull.some((name) => demands(name, "IS NOT NULL"))) return false;
  const leading = [...equal, ...onlyNull.filter((name) => !demands(name, "IS NULL"))];
  const begins = new Set(columns.slice(0, leading.length));
  const ordered = endsWithId || then.length > 1 ? then.slice(0, -1) : then;
  return leading.every((name) => begins.has(name)) &&
    ordered.every((name, at) => columns[leading.length + at] === name);
}

function index(
  suffix: string,
  equal: readonly string[],
  then: readonly string[],
  onlyNull: readonly string[],
  notNull?: string,
): PartialIndex {
  const conditions = [
    ...present(notNull).map((column) => `${quote(column)} IS NOT NULL`),
    ...onlyNull.map((column) => `${quote(column)} IS NULL`),
  ];
  const only = conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`;
  const definition = `(${[...equal, ...then].map(quote).join(", ")})${only}`;
  return { suffix, equal, then, onlyNull, definition };
}

function quote(name: string): string {
  return quoteName(name, '"');
}

function present(...names: readonly (string | undefined)[]): readonly string[] {
  return names.filter((name) => name !== undefined);
}
