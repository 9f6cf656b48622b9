import type { TableDescription } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import type { SchemaProblem } from "../errors.ts";
import { type ClaimIndexes, claimRanges } from "./claim_indexes.ts";
import { indexDdl } from "./ddl.ts";

/** What no index serves, although all columns are there. */
export function missingIndexes(
  table: TableDescription,
  found: ReadonlyMap<string, SqlRow>,
  indexes: ClaimIndexes,
): readonly SchemaProblem[] {
  const ranges = [...claimRanges(table)];
  const areThere = ranges.every(([, { equal, then }]) =>
    [...equal, ...then].every((column) => found.has(column))
  );
  const missing = ranges.map(([range]) => range).filter((range) => indexes[range] === undefined);
  const fix = indexDdl(table, missing);
  if (!areThere || fix.length === 0) return [];
  return [{
    table: table.table,
    problem: "no index serves the claim, which reads rows that it does not want, and locks them",
    fix: `run: ${fix.join("; ")}`,
  }];
}
