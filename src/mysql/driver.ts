import type { Dialect } from "../driver/dialect.ts";
import type { Driver, JoinedTransaction, Session } from "../driver/driver.ts";
import { ClosedError, DriverError, type DriverErrorKind } from "../errors.ts";
import { classify } from "./classify.ts";
import { countLockWaits } from "./count_lock_waits.ts";
import { mysqlDialect } from "./dialect.ts";
import { failure } from "./failure.ts";
import { keepsConnection } from "./keeps_connection.ts";
import { type ConnectionPool, type MysqlSource, poolOf } from "./pool.ts";
import { MysqlSession } from "./session.ts";
import { joinTransaction, type MysqlTx } from "./tx.ts";
import { type MysqlFlavor, type Server, tooOld } from "./settings.ts";

/** The forms MySQL and MariaDB can hold rows in. */
export type MysqlForm = "row lock" | "lease" | "advisory lock";

/** Holdfast's driver for MySQL and MariaDB. Made by `mysql`. */
export interface MysqlDriver extends Driver<"MySQL", MysqlForm, MysqlTx> {
  /** Which of the two the server is, once it has been opened. */
  readonly flavor: MysqlFlavor | undefined;
}

/** A driver over connections of one source. */
export function mysqlDriver(source: MysqlSource): MysqlDriver {
  return new MysqlServerDriver(source);
}

class MysqlServerDriver implements MysqlDriver {
  readonly name = "MySQL";
  readonly forms: readonly MysqlForm[] = ["row lock", "lease", "advisory lock"];
  readonly dialect: Dialect = mysqlDialect;
  readonly connections: number;
  readonly #source: MysqlSource;
  #opening: Promise<ConnectionPool> | undefined;
  #pool: ConnectionPool | undefined;
  #flavor: MysqlFlavor | undefined;

  constructor(source: MysqlSource) {
    this.connections = source.connections;
    this.#source = source;
  }

  get flavor(): MysqlFlavor | undefined {
    return this.#flavor;
  }

  async open(): Promise<void> {
    if (this.#opening !== undefined) {
      throw new ClosedError(
        `Cannot open the MySQL database ${this.#source.label} again: this driver has it open; ` +
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
    if (await keepsConnection(this.#pool)) return;
    throw new DriverError(
      "unusable",
      `Cannot hold advisory locks in the MySQL database ${this.#source.label}: a proxy answers ` +
        `with other connections to the server than it was given, and a lock belongs to one; ` +
        `connect to the server directly`,
    );
  }

  session(): Promise<Session> {
    return this.#pool === undefined
      ? Promise.reject(this.#notOpen())
      : Promise.resolve(new MysqlSession(this.#pool));
  }

  join(tx: MysqlTx): JoinedTransaction {
    return joinTransaction(tx);
  }

  async countLockWaits(): Promise<number> {
    if (this.#pool === undefined) throw this.#notOpen();
    return await countLockWaits(this.#pool);
  }

  classify(error: unknown): DriverErrorKind {
    return classify(error);
  }

  async close(): Promise<void> {
    const opening = this.#opening;
    this.#opening = undefined;
    this.#pool = undefined;
    const pool = await opening?.catch(() => undefined);
    await pool?.close(this.#notOpen());
  }

  async #connect(): Promise<ConnectionPool> {
    const pool = poolOf(this.#source);
    try {
      this.#checkServer(await this.#askServer(pool));
      return pool;
    } catch (error) {
      await pool.close(this.#notOpen());
      throw error;
    }
  }

  async #askServer(pool: ConnectionPool): Promise<Server> {
    try {
      const connection = await pool.take();
      pool.give(connection);
      return connection.server;
    } catch (error) {
      // What went wrong here was not the statement, but the way to the server.
      const cause = error instanceof DriverError && error.cause || error;
      const { kind, message } = failure(cause, `open the MySQL database ${this.#source.label}`);
      throw new DriverError(kind === "other" ? "unusable" : kind, message, { cause });
    }
  }

  #checkServer(server: Server): void {
    this.#flavor = server.flavor;
    const reason = tooOld(server) ?? (server.takesAllText ? undefined : OTHER_CHARACTERS);
    if (reason === undefined) return;
    throw new DriverError(
      "unusable",
      `Cannot open the MySQL database ${this.#source.label}: ${reason}`,
    );
  }

  #notOpen(): ClosedError {
    return new ClosedError(
      `Cannot use the MySQL database ${this.#source.label}: it is not open`,
    );
  }
}

const OTHER_CHARACTERS = "the connections of this pool cannot carry every character; " +
  "make it with charset: 'utf8mb4'";
