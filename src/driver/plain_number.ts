import type { SqlValue } from "./driver.ts";

/** A whole number as a `number`, where that is exact; any other value as it is. */
export function plainNumber(value: SqlValue): SqlValue {
  const exact = typeof value === "bigint" && value >= LEAST && value <= MOST;
  return exact ? Number(value) : value;
}

const MOST = BigInt(Number.MAX_SAFE_INTEGER);
const LEAST = BigInt(Number.MIN_SAFE_INTEGER);
