import type { TableDescription } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import {
  type FoundIndex,
  type PartialIndex,
  partialIndexes,
  serves,
} from "../driver/partial_indexes.ts";
import type { SchemaProblem } from "../errors.ts";
import { missingUnique } from "../driver/missing_unique.ts";
import { createIndex, uniqueIndex } from "./ddl.ts";

/** The claims that no index serves, although all columns are there. */
export function missingIndexes(
  table: TableDescription,
  rows: readonly SqlRow[],
): readonly SchemaProblem[] {
  const columns = new Set(rows.map(({ name }) => String(name).toLowerCase()));
  const found = foundIndexes(rows);
  return partialIndexes(table)
    .filter(({ equal, then, onlyNull }) =>
      lowerCase([...equal, ...then, ...onlyNull]).every((name) => columns.has(name))
    )
    .filter((wanted) => !found.some((index) => serves(index, withoutCase(wanted), true)))
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
  const unique = listedIndexes(rows).filter(({ unique, only }) => Number(unique) && only === null);
  const [create] = uniqueIndex(table);
  return missingUnique(table, present, unique.map(({ columns }) => columns), create);
}

/** The indexes that `inspect` lists, their names in lower case, each with its statement if partial. */
function foundIndexes(rows: readonly SqlRow[]): readonly FoundIndex[] {
  return listedIndexes(rows).map(({ columns, only }) => {
    const predicate = predicateOf(only);
    return { columns, demands: (column, test) => saysOf(predicate, column, test.toLowerCase()) };
  });
}

interface ListedIndex {
  readonly columns: readonly (string | null)[];
  readonly only: string | null;
  readonly unique: number;
}

function listedIndexes(rows: readonly SqlRow[]): readonly ListedIndex[] {
  return JSON.parse(String(rows[0]?.indexes ?? "[]")) as readonly ListedIndex[];
}

/** SQLite does not tell names apart by case. */
function withoutCase(index: PartialIndex): PartialIndex {
  const { equal, then, onlyNull } = index;
  return {
    ...index,
    equal: lowerCase(equal),
    then: lowerCase(then),
    onlyNull: lowerCase(onlyNull),
  };
}

function lowerCase(names: readonly string[]): readonly string[] {
  return names.map((name) => name.toLowerCase());
}

/** What the statement of a partial index says of its rows, in lower case and without quotes. */
function predicateOf(only: string | null): string {
  if (only === null) return "";
  const code = only.toLowerCase().replaceAll(/["`[\]]/g, "").replaceAll(/\s+/g, " ");
  return code.slice(code.lastIndexOf(" where "));
}

/** Whether the predicate says this of the column of this name, and not of one that ends like it. */
function saysOf(predicate: string, name: string, what: string): boolean {
  const at = predicate.indexOf(`${name} ${what}`);
  return at > 0 && /[\s(]/.test(predicate[at - 1]!);
}
