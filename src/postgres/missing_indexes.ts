import type { TableDescription } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import { type FoundIndex, partialIndexes, serves } from "../driver/partial_indexes.ts";
import type { SchemaProblem } from "../errors.ts";
import { missingUnique } from "../driver/missing_unique.ts";
import { createIndex, uniqueIndex } from "./ddl.ts";
import { quote } from "./quote.ts";

/** The claims that no index serves, although all columns are there. */
export function missingIndexes(
  table: TableDescription,
  rows: readonly SqlRow[],
): readonly SchemaProblem[] {
  const columns = new Set(rows.map(({ name }) => String(name)));
  const found = foundIndexes(rows);
  return partialIndexes(table)
    .filter(({ equal, then, onlyNull }) =>
      [...equal, ...then, ...onlyNull].every((name) => columns.has(name))
    )
    .filter((wanted) => !found.some((index) => serves(index, wanted, false)))
    .map((wanted) => ({
      table: table.table,
      problem: "no index serves the claim, which reads every row of the table",
      fix: `run: ${createIndex(table.table, wanted)}`,
    }));
}

/** The problem that no index serves the role `uniqueKey`. */
export function missingUniqueIndex(
  table: TableDescription,
  rows: readonly SqlRow[],
): readonly SchemaProblem[] {
  const present = new Set(rows.map(({ name }) => String(name).toLowerCase()));
  const unique = listedIndexes(rows).filter(({ unique, only }) => unique && only === null);
  const [create] = uniqueIndex(table);
  return missingUnique(table, present, unique.map(({ columns }) => columns), create);
}

/** The indexes that `inspect` lists, each with what holds for its rows if it holds only some. */
function foundIndexes(rows: readonly SqlRow[]): readonly FoundIndex[] {
  return listedIndexes(rows).map(({ columns, only }) => ({
    columns,
    // Postgres shows each condition in parentheses, and a name in quotes only where it needs them.
    demands: (column, test) =>
      [column, quote(column)].some((name) => only?.includes(`(${name} ${test})`) ?? false),
  }));
}

interface ListedIndex {
  readonly columns: readonly (string | null)[];
  readonly only: string | null;
  readonly unique: boolean;
}

function listedIndexes(rows: readonly SqlRow[]): readonly ListedIndex[] {
  return JSON.parse(String(rows[0]?.indexes ?? "[]")) as readonly ListedIndex[];
}
