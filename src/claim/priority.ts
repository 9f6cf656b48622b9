import type { SqlRow } from "../driver/driver.ts";

/** The lowest priority that any column can hold: that of a 64-bit integer. */
export const LOWEST_PRIORITY: bigint = -(2n ** 63n);

/** The priority that a search for the next one has found; `undefined` if there is none. */
export function readPriority(row: SqlRow | undefined): bigint | undefined {
  const priority = row?.priority ?? null;
  return priority === null ? undefined : BigInt(priority as bigint | number | string);
}
