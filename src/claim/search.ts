import type { SearchPlan, SearchValues } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import type { Statement } from "../driver/statement.ts";
import { query, type Steps } from "../driver/steps.ts";
import { LOWEST_PRIORITY, readPriority } from "./priority.ts";

/** Asks the parts of a plan in turn, until they have given as many rows as are wanted. */
export function* search(
  { first, each, nextPriority }: SearchPlan<Statement<SearchValues>>,
  limit: number,
  now: () => number,
): Steps<readonly SqlRow[]> {
  const rows = [...yield* askInTurn(first, { limit, priority: 0n }, now)];
  if (nextPriority === undefined) {
    return [...rows, ...yield* askInTurn(each, { limit: limit - rows.length, priority: 0n }, now)];
  }
  let atLeast = LOWEST_PRIORITY;
  while (rows.length < limit) {
    const [found] = yield* query(nextPriority, { atLeast });
    const priority = readPriority(found);
    if (priority === undefined) break;
    rows.push(...yield* askInTurn(each, { limit: limit - rows.length, priority }, now));
    atLeast = priority + 1n;
  }
  return rows;
}

function* askInTurn(
  parts: readonly Statement<SearchValues>[],
  { limit, priority }: { readonly limit: number; readonly priority: bigint },
  now: () => number,
): Steps<readonly SqlRow[]> {
  const rows: SqlRow[] = [];
  for (const part of parts) {
    if (rows.length >= limit) break;
    rows.push(...yield* query(part, { now: now(), limit: limit - rows.length, priority }));
  }
  return rows;
}
