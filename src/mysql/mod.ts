/**
 * MySQL 8.0.1 and later and MariaDB 10.6 and later for Holdfast, through
 * [mysql2](https://github.com/sidorares/node-mysql2).
 *
 * ```ts ignore
 * import { ack, App, Broker, inbox, json } from "@holdfast/inbox";
 * import { mysql } from "@holdfast/inbox/mysql";
 *
 * const jobs = inbox("jobs", {
 *   id: "id",
 *   attempt: "attempt",
 *   lockedUntil: "locked_until",
 *   payload: json<{ name: string }>("payload"),
 * });
 * const greet = jobs.queue().subscribe(({ name }) => {
 *   console.log(`Hello, ${name}`);
 *   return ack();
 * });
 * const database = mysql("mysql://greeter:secret@db.example.com/greetings");
 * const broker = new Broker(database).createTables(jobs).include(greet);
 *
 * await new App({ name: "greeter" }).withBroker(broker).run();
 * ```
 *
 * Every connection is READ COMMITTED, in UTC, and strict (`sql_mode`) whatever the server's
 * defaults. It waits at most 10 s for a lock, and is ended by the server when it has been silent for
 * 45 s (`wait_timeout`; on MariaDB also `idle_transaction_timeout`): an open transaction sends
 * something every 10 s, so that the rows of a host that is gone are free within a minute.
 *
 * @module
 */

import { labelOf, readUrl } from "./address.ts";
import type { MysqlPool } from "./client.ts";
import { type MysqlDriver, mysqlDriver } from "./driver.ts";
import { connect, type MysqlAddress } from "./own_client.ts";
import type { Sending } from "./settings.ts";

export type { MysqlCallbackPool, MysqlPool, MysqlPromisePool } from "./client.ts";
export type { MysqlDriver, MysqlForm } from "./driver.ts";
export { mysqlTx } from "./tx.ts";
export type { MysqlTransaction, MysqlTx } from "./tx.ts";
export type { TransactionalDelivery } from "../driver/delivery_transaction.ts";
export type { QueryAdapter } from "../driver/driver.ts";
export type { MysqlAddress } from "./own_client.ts";
export type { MysqlFlavor } from "./settings.ts";

/** How a database is used. */
export interface MysqlOptions {
  /** How many connections there may be at once; 10 unless given. */
  readonly connections?: number;
  /**
   * How long the server may work on one statement, in milliseconds; 30,000 unless given. MySQL
   * itself ends no other statement than a SELECT; for any, the connection ends 10 s later.
   */
  readonly statementTimeout?: number;
}

/** Connections that the service has made itself. */
export interface MysqlClient {
  /**
   * A pool of `mysql2` or `mysql2/promise`, with the character set `utf8mb4` and the flag
   * `FOUND_ROWS`, as it has them unless told otherwise, and of the same version of mysql2 as
   * Holdfast's. Holdfast never ends it.
   *
   * What Holdfast sets up on a connection of it, as the time zone, the `sql_mode` and
   * `wait_timeout`, stays so for whoever uses the connection next: give it a pool of its own.
   */
  readonly pool: MysqlPool;
}

/**
 * A MySQL or MariaDB database.
 *
 * @param database a URL as `mysql://user:password@host:port/database`, its parts, or `{ pool }` for
 * a pool of mysql2 that the service has made; of the options, `statementTimeout` goes with it
 */
export function mysql(
  database: string | URL | MysqlAddress | MysqlClient,
  options: MysqlOptions = {},
): MysqlDriver {
  check(options);
  if (database instanceof URL) return mysql(database.href, options);
  if (typeof database === "string") return fromAddress(readUrl(database), options);
  if (typeof database === "object" && database !== null) {
    return "pool" in database ? fromPool(database, options) : fromAddress(database, options);
  }
  throw new TypeError(
    "Cannot open this as a MySQL or MariaDB database: " +
      "give a URL that starts with mysql://, { host, database, … } or { pool }",
  );
}

function fromAddress(address: MysqlAddress, options: MysqlOptions): MysqlDriver {
  return mysqlDriver({
    ...sending(options),
    label: labelOf(address),
    connections: options.connections ?? 10,
    connect: () => connect(address),
  });
}

function fromPool({ pool }: MysqlClient, options: MysqlOptions): MysqlDriver {
  if (options.connections !== undefined) {
    throw new TypeError(
      "Cannot set connections for a pool that is made already: leave it out, and set it there",
    );
  }
  return mysqlDriver({
    ...sending(options),
    label: "of the pool",
    connections: Infinity,
    connect: { theirs: "pool" in pool ? pool.pool : pool },
  });
}

function sending({ statementTimeout = 30_000 }: MysqlOptions): Sending {
  return { statementTimeout, patience: statementTimeout + GRACE, heartbeat: HEARTBEAT };
}

function check(options: MysqlOptions): void {
  for (const [name, value] of Object.entries(options)) {
    const isRight = CHECKS[name as keyof MysqlOptions];
    if (isRight === undefined) throw new TypeError(`Cannot set ${name}: there is no such option`);
    if (value !== undefined && !isRight(value)) {
      throw new TypeError(`Cannot use ${JSON.stringify(value)} as ${name}`);
    }
  }
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) > 0;
const CHECKS: Readonly<Record<keyof MysqlOptions, (value: unknown) => boolean>> = {
  connections: isCount,
  statementTimeout: (value) => isCount(value) && Number(value) < 2 ** 31 - GRACE,
};

/** The server gives up on a statement first, if it can; then its outcome is known. */
const GRACE = 10_000;
const HEARTBEAT = 10_000;
