/**
 * SQLite for Holdfast: in memory or in a file, through the runtime's own `node:sqlite` or through
 * `jsr:@db/sqlite`.
 *
 * ```ts
 * import { ack, App, Broker, inbox, json } from "@holdfast/inbox";
 * import { sqlite } from "@holdfast/inbox/sqlite";
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
 * const broker = new Broker(sqlite(":memory:")).createTables(jobs).include(greet);
 * const app = new App({ name: "greeter" }).withBroker(broker);
 *
 * await app.start();
 * await app.publish(jobs.queue(), { name: "Ada" });
 * await app.stop();
 * ```
 *
 * @module
 */

import { DbSqliteClient, type DbSqliteHandle, openDbSqliteClient } from "./db_sqlite_client.ts";
import type { Synchronous } from "./connection.ts";
import { type SqliteDriver, sqliteDriver } from "./driver.ts";
import { NodeClient, type NodeSqliteHandle, openNodeClient } from "./node_client.ts";

export type { DbSqliteHandle, DbSqliteStatement } from "./db_sqlite_client.ts";
export type { NodeSqliteHandle, NodeSqliteStatement } from "./node_client.ts";
export type { SqliteDriver, SqliteForm } from "./driver.ts";
export type { Synchronous } from "./connection.ts";
export { sqliteTx } from "./tx.ts";
export type { SqliteTx } from "./tx.ts";
export type { TransactionalDelivery } from "../driver/delivery_transaction.ts";
export type { QueryAdapter } from "../driver/driver.ts";

/** How a database that Holdfast opens is set up. */
export interface SqliteOptions {
  /**
   * How hard a commit is pushed to the disk. `"full"`, the default, loses nothing when the power
   * fails; `"normal"` is faster and may then lose the last commits.
   */
  readonly synchronous?: Synchronous;
}

/** A database that the service has opened itself. */
export interface SqliteHandle {
  /**
   * A `DatabaseSync` of `node:sqlite`, or a `Database` of `jsr:@db/sqlite`. Holdfast never closes
   * it, sets its `busy_timeout` to 0 (it waits without blocking instead), and waits while the
   * service has a transaction of its own open on it.
   * Holdfast's own transactions begin and end in one turn of the event loop, so that statements of
   * the service never become part of them.
   */
  readonly handle: NodeSqliteHandle | DbSqliteHandle;
}

/**
 * A SQLite database through the runtime's own `node:sqlite`.
 *
 * A file is created where there is none, and is kept in WAL mode. `":memory:"` is a database of its
 * own that ends with the app.
 *
 * @param database a path, a `file:` URL, `":memory:"`, or `{ handle }` for one that is open already
 */
export function sqlite(
  database: string | URL | SqliteHandle,
  options: SqliteOptions = {},
): SqliteDriver {
  if (typeof database === "object" && "handle" in database) return fromHandle(database.handle);
  const location = locationOf(database);
  return sqliteDriver({ ...settingsOf(location, options), open: () => openNodeClient(location) });
}

/**
 * A SQLite database through `jsr:@db/sqlite`, which is loaded when the app starts. It needs
 * `--allow-ffi`.
 *
 * @param path a path, or `":memory:"`
 */
export function dbSqlite(path: string, options: SqliteOptions = {}): SqliteDriver {
  const location = locationOf(path);
  return sqliteDriver({
    ...settingsOf(location, options),
    open: () => openDbSqliteClient(location),
  });
}

function fromHandle(handle: NodeSqliteHandle | DbSqliteHandle): SqliteDriver {
  if (typeof handle?.prepare !== "function") {
    throw new TypeError(
      "Cannot use this handle as a SQLite database: give a DatabaseSync of node:sqlite or a " +
        "Database of jsr:@db/sqlite",
    );
  }
  return sqliteDriver({
    label: "of the handle",
    synchronous: undefined,
    open: () => "int64" in handle ? new DbSqliteClient(handle) : new NodeClient(handle),
  });
}

function locationOf(database: string | URL): string {
  if (database instanceof URL && database.protocol === "file:") return database.href;
  if (typeof database === "string" && database !== "") return database;
  throw new TypeError(
    `Cannot open ${String(database)} as a SQLite database: ` +
      `give a path, a file: URL, ":memory:" or { handle }`,
  );
}

function settingsOf(
  location: string,
  { synchronous = "full" }: SqliteOptions,
): { label: string; synchronous: Synchronous } {
  if (synchronous === "full" || synchronous === "normal") {
    return { label: JSON.stringify(location), synchronous };
  }
  throw new TypeError(
    `Cannot use ${JSON.stringify(synchronous)} as synchronous: give "full" or "normal"`,
  );
}
