import { pid } from "node:process";
import { hostNow } from "../test_time.ts";

/** What the names of all test databases begin with. */
export const NAME_PREFIX = "holdfast_test_";

/**
 * A name that no other test database has: it tells the second of its creation, in UTC, and the
 * process. It needs no quotes on any database.
 */
export function newDatabaseName(): string {
  const [day, time] = new Date(hostNow()).toISOString().replace(/[-:]/g, "").split(/[T.]/);
  return `${NAME_PREFIX}${day}_${time}_${pid}_${crypto.randomUUID().slice(0, 8)}`;
}

/** How long ago a test database was made, in milliseconds; `undefined` for any other name. */
export function ageOfDatabase(name: string): number | undefined {
  const [, ...parts] = NAME.exec(name) ?? [];
  if (parts.length === 0) return undefined;
  const [year, month, day, hour, minute, second] = parts.map(Number) as Parts;
  return hostNow() - Date.UTC(year, month - 1, day, hour, minute, second);
}

type Parts = [number, number, number, number, number, number];

const NAME = new RegExp(
  `^${NAME_PREFIX}(\\d{4})(\\d\\d)(\\d\\d)_(\\d\\d)(\\d\\d)(\\d\\d)_\\d+_[0-9a-f]{8}$`,
);
