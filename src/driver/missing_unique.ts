import type { SchemaProblem } from "../errors.ts";
import type { TableDescription } from "./dialect.ts";
import { uniqueColumns } from "./roles.ts";

/** An index of a table: its columns, NULL for an expression, if it holds all rows, each once. */
export type UniqueIndex = readonly (string | null)[];

/**
 * The problem that nothing keeps two rows from having one unique key; none where an index does, or
 * where a column of it is missing, which is a problem of its own.
 *
 * @param create the statement that would create the index
 */
export function missingUnique(
  table: TableDescription,
  present: ReadonlySet<string>,
  indexes: readonly UniqueIndex[],
  create: string | undefined,
): readonly SchemaProblem[] {
  const wanted = uniqueColumns(table).map((name) => name.toLowerCase());
  if (wanted.length === 0 || !wanted.every((name) => present.has(name))) return [];
  const isThere = indexes.some((columns) =>
    columns.length === wanted.length &&
    wanted.every((name) => columns.some((column) => column?.toLowerCase() === name))
  );
  if (isThere) return [];
  return [{
    table: table.table,
    column: table.uniqueKey,
    problem: `no unique index of ${
      wanted.map((name) => `"${name}"`).join(" and ")
    } keeps two rows ` +
      `from having one key`,
    fix: `run: ${create}`,
  }];
}
