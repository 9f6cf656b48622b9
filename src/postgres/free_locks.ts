import type { LockHolder } from "../driver/driver.ts";
import { deadline } from "../driver/real_time.ts";
import type { DriverError } from "../errors.ts";
import type { PostgresSql } from "./client.ts";
import { failure, noAnswer } from "./failure.ts";
import { send } from "./values.ts";

/** The locks of a connection that its client has taken back. */
export interface StrayLocks {
  readonly holder: LockHolder;
  readonly keys: readonly string[];
}

/** Gives stray locks back or, from another connection, ends theirs. Resolves to what went wrong. */
export async function freeLocks(
  client: PostgresSql,
  { holder, keys }: StrayLocks,
  patience: number,
): Promise<DriverError | undefined> {
  const attempt = "free the locks of a connection";
  try {
    const sent = send(client, FREE, [holder, JSON.stringify(keys)], false);
    await deadline(patience, sent, () => noAnswer(attempt, patience));
  } catch (error) {
    return failure(error, attempt);
  }
}

const FREE = `SELECT CASE WHEN pg_backend_pid() = $1::int THEN (
  SELECT bool_and(pg_advisory_unlock(hashtextextended(key, 0)))
  FROM jsonb_array_elements_text($2::text::jsonb) AS key
) ELSE pg_terminate_backend($1::int) END`;
