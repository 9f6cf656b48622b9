import type { Dialect } from "../driver/dialect.ts";
import type { Driver, JoinedTransaction, Session, SqlValue } from "../driver/driver.ts";
import type { Listening, NotificationListener } from "../driver/listen.ts";
import { ClosedError, DriverError, type DriverErrorKind } from "../errors.ts";
import { classify } from "./classify.ts";
import { countLockWaits } from "./count_lock_waits.ts";
import { postgresDialect } from "./dialect.ts";
import { failure } from "./failure.ts";
import { listen } from "./listen.ts";
import { PostgresPool, type PostgresSource } from "./pool.ts";
import { PostgresSession } from "./session.ts";
import { joinTransaction, type PostgresTx } from "./tx.ts";

/** The forms Postgres can hold rows in. */
export type PostgresForm = "row lock" | "lease" | "advisory lock";

/** Holdfast's driver for Postgres. Made by `postgres`. */
export type PostgresDriver = Driver<"Postgres", PostgresForm, PostgresTx>;

/** A driver over one client. */
export function postgresDriver(source: PostgresSource): PostgresDriver {
  return new PostgresServerDriver(source);
}

class PostgresServerDriver implements PostgresDriver {
  readonly name = "Postgres";
  readonly forms: readonly PostgresForm[] = ["row lock", "lease", "advisory lock"];
  readonly dialect: Dialect = postgresDialect;
  readonly connections: number;
  readonly #source: PostgresSource;
  #opening: Promise<PostgresPool> | undefined;
  #pool: PostgresPool | undefined;
  readonly #listening = new Set<Listening>();

  constructor(source: PostgresSource) {
    this.connections = source.connections;
    this.#source = source;
  }

  async open(): Promise<void> {
    if (this.#opening !== undefined) {
      throw new ClosedError(
        `Cannot open the Postgres database ${this.#source.label} again: this driver has it open; ` +
          `give each broker a driver of its own`,
      );
    }
    const opening = this.#connect();
    this.#opening = opening;
    try {
      const pool = await opening;
      if (this.#opening === opening) this.#pool = pool;
    } catch (error) {
      if (this.#opening === opening) this.#opening = undefined;
      throw error;
    }
  }

  async enableLocks(): Promise<void> {
    if (this.#pool === undefined) throw this.#notOpen();
    if (!await this.#pool.sharesProcesses()) return;
    throw new DriverError(
      "unusable",
      `Cannot hold advisory locks in the Postgres database ${this.#source.label}: a pooler gives ` +
        `each transaction or statement another connection to the server, and a lock belongs to ` +
        `one; connect to the server directly, or set pool_mode = session in PgBouncer`,
    );
  }

  session(): Promise<Session> {
    return this.#pool === undefined
      ? Promise.reject(this.#notOpen())
      : Promise.resolve(new PostgresSession(this.#pool));
  }

  join(tx: PostgresTx): JoinedTransaction {
    return joinTransaction(tx, this.#source.prepare);
  }

  async countLockWaits(): Promise<number> {
    if (this.#pool === undefined) throw this.#notOpen();
    return await countLockWaits(this.#pool);
  }

  async listen(channel: string, listener: NotificationListener): Promise<Listening> {
    const pool = this.#pool;
    if (pool === undefined) throw this.#notOpen();
    const { label, connectListening } = this.#source;
    if (connectListening === undefined) {
      throw new DriverError(
        "unusable",
        `Cannot listen in the Postgres database ${label}: Holdfast cannot make a connection of its ` +
          `own; give the driver an address in place of a client`,
      );
    }
    const query = (text: string, params: readonly SqlValue[]) => pool.query(text, params);
    const listening = await listen({ label, connect: connectListening, query }, channel, listener);
    const own: Listening = {
      close: () => {
        this.#listening.delete(own);
        return listening.close();
      },
    };
    this.#listening.add(own);
    return own;
  }

  classify(error: unknown): DriverErrorKind {
    return classify(error);
  }

  async close(): Promise<void> {
    const opening = this.#opening;
    this.#opening = undefined;
    this.#pool = undefined;
    await Promise.all([...this.#listening].map((each) => each.close()));
    const pool = await opening?.catch(() => undefined);
    await pool?.close(this.#notOpen());
  }

  async #connect(): Promise<PostgresPool> {
    const pool = this.#makePool();
    try {
      await this.#checkServer(pool);
      return pool;
    } catch (error) {
      await pool.close(this.#notOpen());
      throw error;
    }
  }

  #makePool(): PostgresPool {
    try {
      return new PostgresPool(this.#source);
    } catch {
      // What the client says of an address that it cannot read shows the password.
      throw new DriverError(
        "unusable",
        `Cannot open the Postgres database ${this.#source.label}: its address cannot be read; ` +
          `write what is special in a user, password or database in percent encoding`,
      );
    }
  }

  async #checkServer(pool: PostgresPool): Promise<void> {
    const { rows: [row] } = await this.#askVersion(pool);
    const version = Number(row?.server_version_num);
    if (Number.isNaN(version)) {
      throw this.#cannotOpen(
        "the client renames columns or changes rows; give one without the option transform",
      );
    }
    if (version < OLDEST_VERSION) {
      throw this.#cannotOpen(
        `the server is Postgres ${Math.floor(version / 10000)}; Holdfast needs 13 or later`,
      );
    }
  }

  async #askVersion(pool: PostgresPool) {
    try {
      return await pool.query(
        "SELECT current_setting('server_version_num') AS server_version_num",
        [],
      );
    } catch (error) {
      // What went wrong here was not the statement, but the way to the server.
      const cause = error instanceof DriverError && error.cause || error;
      const { kind, message } = failure(
        cause,
        `open the Postgres database ${this.#source.label}`,
      );
      throw new DriverError(kind === "other" ? "unusable" : kind, message, { cause });
    }
  }

  #cannotOpen(reason: string): DriverError {
    return new DriverError(
      "unusable",
      `Cannot open the Postgres database ${this.#source.label}: ${reason}`,
    );
  }

  #notOpen(): ClosedError {
    return new ClosedError(
      `Cannot use the Postgres database ${this.#source.label}: it is not open`,
    );
  }
}

const OLDEST_VERSION = 130000;
