import type { ConnectionPool } from "./pool.ts";
import type { MysqlFlavor } from "./settings.ts";

/** How many statements of this database wait for locks that others hold, as rows, tables or keys. */
export async function countLockWaits(pool: ConnectionPool): Promise<number> {
  const connection = await pool.take();
  try {
    const { rows: [row] } = await connection.run(LOCK_WAITS[connection.server.flavor], []);
    return Number(row!.waits);
  } finally {
    pool.give(connection);
  }
}

/**
 * MariaDB shows its row locks as they were up to 0.1 s ago; how many of them are waited for it counts
 * more promptly, but for all databases of the server together.
 */
const LOCK_WAITS: Readonly<Record<MysqlFlavor, string>> = {
  mysql: `SELECT COUNT(*) AS waits FROM performance_schema.threads
WHERE PROCESSLIST_DB = DATABASE() AND (
  THREAD_ID IN (SELECT REQUESTING_THREAD_ID FROM performance_schema.data_lock_waits)
  OR THREAD_ID IN (
    SELECT OWNER_THREAD_ID FROM performance_schema.metadata_locks WHERE LOCK_STATUS = 'PENDING'
  ))`,
  mariadb: `SELECT COALESCE(SUM(STATE IN (
    'Waiting for table metadata lock', 'Waiting for table level lock', 'User lock'
  )), 0) + LEAST(
  COALESCE(SUM(ID IN (
    SELECT trx_mysql_thread_id FROM information_schema.INNODB_LOCK_WAITS
    JOIN information_schema.INNODB_TRX ON trx_id = requesting_trx_id
  )), 0),
  (SELECT CAST(VARIABLE_VALUE AS UNSIGNED) FROM information_schema.GLOBAL_STATUS
    WHERE VARIABLE_NAME = 'INNODB_ROW_LOCK_CURRENT_WAITS')
) AS waits
FROM information_schema.PROCESSLIST WHERE DB = DATABASE()`,
};
