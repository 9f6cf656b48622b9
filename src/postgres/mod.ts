/**
 * Postgres 13 and later for Holdfast, through [postgres.js](https://github.com/porsager/postgres).
 *
 * ```ts ignore
 * import { ack, App, Broker, inbox, json } from "@holdfast/inbox";
 * import { postgres } from "@holdfast/inbox/postgres";
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
 * const database = postgres("postgres://greeter:secret@db.example.com/greetings");
 * const broker = new Broker(database).createTables(jobs).include(greet);
 *
 * await new App({ name: "greeter" }).withBroker(broker).run();
 * ```
 *
 * @module
 */

import type { PostgresSql } from "./client.ts";
import { type PostgresDriver, postgresDriver } from "./driver.ts";
import { openListeningClient, openOwnClient, type PostgresAddress } from "./own_client.ts";
import type { PostgresSource } from "./pool.ts";
import { labelOf, startupSettings, transactionSettings } from "./settings.ts";

export type { PostgresQuery, PostgresSql, PostgresStatements } from "./client.ts";
export type { PostgresDriver, PostgresForm } from "./driver.ts";
export type { PostgresAddress } from "./own_client.ts";
export { postgresTx } from "./tx.ts";
export type { PostgresTransaction, PostgresTx } from "./tx.ts";
export type { TransactionalDelivery } from "../driver/delivery_transaction.ts";
export type { QueryAdapter } from "../driver/driver.ts";

/** How a database is used. */
export interface PostgresOptions {
  /** How many connections there may be at once; 10 unless given. */
  readonly connections?: number;
  /** The name under which the server lists the connections; `holdfast` unless given. */
  readonly applicationName?: string;
  /** How long the server may work on one statement, in milliseconds; 30,000 unless given. */
  readonly statementTimeout?: number;
  /**
   * Whether the address is that of a PgBouncer. Nothing is prepared then, and settings of the server
   * that PgBouncer refuses are made in each transaction instead. The advisory lock form needs one
   * with `pool_mode = session`.
   */
  readonly pgBouncer?: boolean;
  /** Whether statements are prepared, once per connection; so they are, except behind PgBouncer. */
  readonly prepare?: boolean;
}

/** A client that the service has made itself. */
export interface PostgresClient {
  /**
   * A client of postgres.js, without the option `transform`. Holdfast never ends it. The time that a
   * statement waits for one of its connections counts as time without an answer.
   *
   * An address is the better choice: a client of its own Holdfast replaces when a connection of it
   * is stuck. A client that is made for it should have `fetch_types: false`: a connection that is
   * lost while postgres.js fetches types ends the process.
   */
  readonly sql: PostgresSql;
}

/**
 * A Postgres database.
 *
 * @param database a URL as `postgres://user:password@host:port/database`, its parts, or `{ sql }` for
 * a client of postgres.js that the service has made; of the options, `statementTimeout` and
 * `prepare` go with it
 */
export function postgres(
  database: string | URL | PostgresAddress | PostgresClient,
  options: PostgresOptions = {},
): PostgresDriver {
  check(options);
  if (database instanceof URL) return postgres(database.href, options);
  if (typeof database === "string") {
    if (/^postgres(ql)?:\/\/./.test(database)) return fromAddress(database, options);
  } else if (typeof database === "object" && database !== null) {
    return "sql" in database ? fromClient(database, options) : fromAddress(database, options);
  }
  throw new TypeError(
    "Cannot open this as a Postgres database: " +
      "give a URL that starts with postgres://, { host, database, … } or { sql }",
  );
}

function fromAddress(
  address: string | PostgresAddress,
  options: PostgresOptions,
): PostgresDriver {
  const { connections = 10, pgBouncer = false, prepare = !pgBouncer } = options;
  const startup = startupSettings(options);
  return postgresDriver({
    ...sending(options),
    label: labelOf(address),
    connections,
    prepare,
    connect: () => openOwnClient({ address, connections, prepare, startup }),
    connectListening: (events) => openListeningClient({ address, startup }, events),
    localSettings: pgBouncer ? transactionSettings(options) : {},
  });
}

function fromClient({ sql }: PostgresClient, options: PostgresOptions): PostgresDriver {
  for (const option of ["connections", "applicationName", "pgBouncer"] as const) {
    if (options[option] === undefined) continue;
    throw new TypeError(
      `Cannot set ${option} for a client that is made already: leave it out, and set it there`,
    );
  }
  return postgresDriver({
    ...sending(options),
    label: "of the client",
    connections: Infinity,
    connect: { theirs: sql },
    localSettings: transactionSettings(options),
  });
}

function sending(
  { statementTimeout = 30_000, prepare = true }: PostgresOptions,
): Pick<PostgresSource, "prepare" | "patience" | "heartbeat" | "secondsToEnd"> {
  return {
    prepare,
    patience: statementTimeout + GRACE,
    heartbeat: HEARTBEAT,
    secondsToEnd: SECONDS_TO_END,
  };
}

function check(options: PostgresOptions): void {
  for (const [name, value] of Object.entries(options)) {
    const isRight = CHECKS[name as keyof PostgresOptions];
    if (isRight === undefined) throw new TypeError(`Cannot set ${name}: there is no such option`);
    if (value !== undefined && !isRight(value)) {
      throw new TypeError(`Cannot use ${JSON.stringify(value)} as ${name}`);
    }
  }
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) > 0;
const isSwitch = (value: unknown): boolean => typeof value === "boolean";
const CHECKS: Readonly<Record<keyof PostgresOptions, (value: unknown) => boolean>> = {
  connections: isCount,
  applicationName: (value) => typeof value === "string" && value !== "",
  statementTimeout: (value) => isCount(value) && Number(value) < 2 ** 31 - GRACE,
  pgBouncer: isSwitch,
  prepare: isSwitch,
};

/** The server gives up on a statement first, if it can be reached; then its outcome is known. */
const GRACE = 10_000;
const HEARTBEAT = 10_000;
const SECONDS_TO_END = 5;
