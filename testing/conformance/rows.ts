import type { SqlValue } from "../../src/driver/driver.ts";
import type { TestApp } from "../test_app.ts";

/** A row of the suite's table; times in milliseconds since 1970. */
export interface JobRow {
  readonly id: bigint;
  readonly attempt: number | undefined;
  readonly lockedUntil: number | null;
}

/** The rows of the suite's table by id. */
export async function rowsOf(app: TestApp): Promise<readonly JobRow[]> {
  const rows = await app.query("SELECT * FROM jobs ORDER BY id");
  return rows.map((row) => ({
    id: BigInt(row.id as bigint),
    attempt: row.attempt === undefined ? undefined : Number(row.attempt),
    lockedUntil: row.locked_until === null ? null : readTime(row.locked_until!),
  }));
}

/** A time: milliseconds, or the database's own text, in UTC where it names no zone. */
export function readTime(time: SqlValue): number {
  if (typeof time !== "string" || /^\d+$/.test(time)) return Number(time);
  const iso = time.replace(" ", "T");
  return Date.parse(/[+-]\d\d$/.test(iso) ? `${iso}:00` : `${iso}Z`);
}
