import type { TableDescription } from "../driver/dialect.ts";
import { quote } from "./quote.ts";
import type { TableIndex } from "./table_index.ts";

/**
 * What claims read by an index: rows that are not leased, rows in order of their lease's expiry, the
 * first row of a FIFO queue, and a row by its id.
 */
export type ClaimRange = "free" | "expired" | "first" | "row";

/** An index that serves a range. */
export interface ClaimIndex {
  /** Its name. */
  readonly name: string;
  /** The quoted columns in which it orders the range. */
  readonly order: readonly string[];
}

/** The index of each range; absent where none serves it. */
export type ClaimIndexes = Readonly<Partial<Record<ClaimRange, ClaimIndex>>>;

/** What an index has to be to serve a range, in names of columns. */
export interface RangeColumns {
  /** Where the range has one value each, so that their order does not matter. */
  readonly equal: readonly string[];
  /** What the index must go on with. */
  readonly then: readonly string[];
}

/** The ranges that the claims of a table read. */
export function claimRanges(table: TableDescription): ReadonlyMap<ClaimRange, RangeColumns> {
  const { group, processedAt, lockedUntil, priority, retryAfter, id } = table;
  const rows = present(group, processedAt);
  const ranges = new Map<ClaimRange, RangeColumns>([["row", { equal: [id.column], then: [] }]]);
  if (table.fifo) {
    ranges.set("first", { equal: rows, then: present(priority, id.column) });
  } else {
    const equal = [...rows, ...present(lockedUntil, priority)];
    ranges.set("free", { equal, then: present(retryAfter, id.column) });
  }
  if (lockedUntil !== undefined) ranges.set("expired", { equal: rows, then: [lockedUntil] });
  return ranges;
}

/** Which of the table's indexes serve its claims. */
export function claimIndexes(
  table: TableDescription,
  indexes: readonly TableIndex[],
): ClaimIndexes {
  const shortestFirst = indexes.toSorted((a, b) => a.size - b.size);
  return Object.fromEntries(
    [...claimRanges(table)].flatMap(([range, columns]) => {
      const index = shortestFirst.find(({ columns: found }) => serves(found, columns));
      if (index === undefined) return [];
      const order = index.columns.slice(columns.equal.length).map(quote);
      return [[range, { name: index.name, order }]];
    }),
  );
}

/** Names are compared without case, as the servers do. */
function serves(found: readonly string[], { equal, then }: RangeColumns): boolean {
  const names = found.map((name) => name.toLowerCase());
  const leading = new Set(names.slice(0, equal.length));
  return equal.every((name) => leading.has(name.toLowerCase())) &&
    then.every((name, at) => names[equal.length + at] === name.toLowerCase());
}

function present(...names: readonly (string | undefined)[]): readonly string[] {
  return names.filter((name) => name !== undefined);
}
