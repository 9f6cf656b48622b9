import type { TableDescription } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import type { SchemaProblem } from "../errors.ts";
import { type ClaimIndex, claimIndexes } from "./ddl.ts";
import { quote } from "./quote.ts";

/** The claims that no index serves, although all columns are there. */
export function missingIndexes(
  table: TableDescription,
  rows: readonly SqlRow[],
): readonly SchemaProblem[] {
  const columns = new Set(rows.map(({ name }) => String(name)));
  const found = JSON.parse(String(rows[0]?.indexes ?? "[]")) as readonly FoundIndex[];
  return claimIndexes(table)
    .filter(({ equal, then, onlyNull }) =>
      [...equal, ...then, ...onlyNull].every((name) => columns.has(name))
    )
    .filter((wanted) => !found.some((index) => serves(index, wanted)))
    .map(({ text }) => ({
      table: table.table,
      problem: "no index serves the claim, which reads every row of the table",
      fix: `run: ${text}`,
    }));
}

/** An index as `inspect` lists it. */
interface FoundIndex {
  /** Its columns; NULL for an expression. */
  readonly columns: readonly (string | null)[];
  /** What holds for its rows, if it holds only some. */
  readonly only: string | null;
}

/**
 * A column that is NULL in all rows of the claim must be one of the leading columns, unless the index
 * holds only such rows; one that holds only other rows is of no use.
 */
function serves({ columns, only }: FoundIndex, { equal, then, onlyNull }: ClaimIndex): boolean {
  if (onlyNull.some((name) => demands(only, name, "IS NOT NULL"))) return false;
  const leading = [...equal, ...onlyNull.filter((name) => !demands(only, name, "IS NULL"))];
  const begins = new Set(columns.slice(0, leading.length));
  // Rows of one time are few: that they are sorted by id costs little.
  const ordered = then.length > 1 ? then.slice(0, -1) : then;
  return leading.every((name) => begins.has(name)) &&
    ordered.every((name, at) => columns[leading.length + at] === name);
}

/** Postgres shows each condition in parentheses, and a name in quotes only where it needs them. */
function demands(only: string | null, column: string, test: string): boolean {
  return [column, quote(column)].some((name) => only?.includes(`(${name} ${test})`));
}
