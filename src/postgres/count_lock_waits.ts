import type { PostgresPool } from "./pool.ts";

/** How many statements of this database wait for locks that others hold, as rows, tables or keys. */
export async function countLockWaits(pool: PostgresPool): Promise<number> {
  const { rows: [row] } = await pool.query(LOCK_WAITS, []);
  return Number(row!.waits);
}

/** Once a lock is granted nobody blocks, though the session may not have noticed yet. */
const LOCK_WAITS = `SELECT count(*) AS waits FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
  AND cardinality(pg_blocking_pids(pid)) > 0`;
