import type { TableDescription } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import type { SchemaProblem } from "../errors.ts";
import { type ClaimIndex, claimIndexes } from "./ddl.ts";

/** The claims that no index serves, although all columns are there. */
export function missingIndexes(
  table: TableDescription,
  rows: readonly SqlRow[],
): readonly SchemaProblem[] {
  const columns = new Set(rows.map(({ name }) => String(name).toLowerCase()));
  const found = JSON.parse(String(rows[0]?.indexes ?? "[]")) as readonly FoundIndex[];
  return claimIndexes(table)
    .filter(({ equal, then, onlyNull }) =>
      [...equal, ...then, ...onlyNull].every((name) => columns.has(name.toLowerCase()))
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
  /** Its columns, in lower case; NULL for an expression. */
  readonly columns: readonly (string | null)[];
  /** The statement that created it, if it holds only some rows. */
  readonly only: string | null;
}

/**
 * A column that is NULL in all rows of the claim must be one of the leading columns, unless the index
 * holds only such rows. The id need not be there: SQLite ends each index with the row's own.
 */
function serves({ columns, only }: FoundIndex, { equal, then, onlyNull }: ClaimIndex): boolean {
  const predicate = predicateOf(only);
  if (onlyNull.some((name) => saysOf(predicate, name, "is not null"))) return false;
  const leading = [
    ...equal,
    ...onlyNull.filter((name) => !saysOf(predicate, name, "is null")),
  ].map((name) => name.toLowerCase());
  const begins = new Set(columns.slice(0, leading.length));
  const ordered = then.slice(0, -1);
  return leading.every((name) => begins.has(name)) &&
    ordered.every((name, at) => columns[leading.length + at] === name.toLowerCase());
}

/** What the statement of a partial index says of its rows, in lower case and without quotes. */
function predicateOf(only: string | null): string {
  if (only === null) return "";
  const code = only.toLowerCase().replaceAll(/["`[\]]/g, "").replaceAll(/\s+/g, " ");
  return code.slice(code.lastIndexOf(" where "));
}

/** Whether the predicate says this of the column of this name, and not of one that ends like it. */
function saysOf(predicate: string, name: string, what: string): boolean {
  const at = predicate.indexOf(`${name.toLowerCase()} ${what}`);
  return at > 0 && /[\s(]/.test(predicate[at - 1]!);
}
