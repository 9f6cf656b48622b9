import { ClosedError, DriverError, type DriverErrorKind } from "../errors.ts";
import type { Dialect } from "../driver/dialect.ts";
import type { Driver, JoinedTransaction, Session } from "../driver/driver.ts";
import type { SqliteClient } from "./client.ts";
import { type ConnectionSettings, SqliteConnection } from "./connection.ts";
import { sqliteDialect } from "./dialect.ts";
import { classify } from "./result_code.ts";
import { SqliteSession } from "./session.ts";
import { joinTransaction, type SqliteTx } from "./tx.ts";

/** The forms SQLite can hold rows in: it has no row locks. */
export type SqliteForm = "lease" | "advisory lock";

/** Holdfast's driver for SQLite. Made by `sqlite` and `dbSqlite`. */
export type SqliteDriver = Driver<"SQLite", SqliteForm, SqliteTx>;

/** Where a driver's client comes from. */
export interface ClientSource extends ConnectionSettings {
  /** Opens the client, or brings the caller's handle. */
  readonly open: () => SqliteClient | Promise<SqliteClient>;
}

/** A driver over one SQLite library. */
export function sqliteDriver(source: ClientSource): SqliteDriver {
  return new SqliteFileDriver(source);
}

class SqliteFileDriver implements SqliteDriver {
  readonly name = "SQLite";
  readonly forms: readonly SqliteForm[] = ["lease", "advisory lock"];
  readonly dialect: Dialect = sqliteDialect;
  readonly hasOneWriter = true;
  readonly #source: ClientSource;
  #opening: Promise<SqliteConnection> | undefined;
  #connection: SqliteConnection | undefined;

  constructor(source: ClientSource) {
    this.#source = source;
  }

  async open(): Promise<void> {
    if (this.#opening !== undefined) {
      throw new ClosedError(
        `Cannot open the SQLite database ${this.#source.label} again: this driver has it open; ` +
          `give each broker a driver of its own`,
      );
    }
    const opening = this.#connect();
    this.#opening = opening;
    try {
      this.#connection = await opening;
    } catch (error) {
      if (this.#opening === opening) this.#opening = undefined;
      throw error;
    }
  }

  // deno-lint-ignore require-await -- a refusal is a rejection
  async enableLocks(): Promise<void> {
    this.#opened().enableLocks();
  }

  // deno-lint-ignore require-await -- a refusal is a rejection
  async session(): Promise<Session> {
    return new SqliteSession(this.#opened());
  }

  join(tx: SqliteTx): JoinedTransaction {
    return joinTransaction(tx);
  }

  // deno-lint-ignore require-await -- a refusal is a rejection
  async countLockWaits(): Promise<number> {
    return this.#opened().waiting;
  }

  classify(error: unknown): DriverErrorKind {
    return classify(error);
  }

  async close(): Promise<void> {
    const opening = this.#opening;
    this.#opening = undefined;
    const connection = await opening?.catch(() => undefined);
    this.#connection = undefined;
    connection?.close();
  }

  #opened(): SqliteConnection {
    if (this.#connection !== undefined) return this.#connection;
    throw new ClosedError(`Cannot use the SQLite database ${this.#source.label}: it is not open`);
  }

  async #connect(): Promise<SqliteConnection> {
    return await SqliteConnection.open(await this.#openClient(), this.#source);
  }

  async #openClient(): Promise<SqliteClient> {
    try {
      return await this.#source.open();
    } catch (cause) {
      if (cause instanceof DriverError) throw cause;
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new DriverError(
        "unusable",
        `Cannot open the SQLite database ${this.#source.label}: ${reason}; ` +
          `check the path, and that its folder exists and can be written`,
        { cause },
      );
    }
  }
}
