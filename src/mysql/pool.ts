import { deadline } from "../driver/real_time.ts";
import { DriverError } from "../errors.ts";
import type { ClientConnection, MysqlCallbackPool } from "./client.ts";
import { MysqlConnection } from "./connection.ts";
import { failure } from "./failure.ts";
import { Permits } from "../driver/permits.ts";
import type { Sending } from "./settings.ts";

/** Where connections come from, and how they are used. */
export interface MysqlSource extends Sending {
  /** The address without its password, for messages. */
  readonly label: string;
  /** How many connections there may be, where they are our own. */
  readonly connections: number;
  /** Opens a connection of our own; a pool that the caller has made comes as `theirs`. */
  readonly connect: (() => Promise<ClientConnection>) | { readonly theirs: MysqlCallbackPool };
}

/** Connections, taken and given back. */
export interface ConnectionPool {
  /** Takes a connection, and waits for one where all are taken. */
  take(): Promise<MysqlConnection>;
  /** Gives a connection back, whatever became of it. */
  give(connection: MysqlConnection): void;
  /** Closes what is our own, once everything has been given back. */
  close(reason: Error): Promise<void>;
}

/** The pool of a source. */
export function poolOf(source: MysqlSource): ConnectionPool {
  return typeof source.connect === "function"
    ? new OwnPool(source, source.connect)
    : new TheirPool(source, source.connect.theirs);
}

/** Opens connections when they are needed. One that has been idle for long is replaced. */
class OwnPool implements ConnectionPool {
  readonly #source: MysqlSource;
  readonly #connect: () => Promise<ClientConnection>;
  readonly #permits: Permits;
  readonly #all = new Set<MysqlConnection>();
  readonly #idle: MysqlConnection[] = [];
  #closed: Error | undefined;

  constructor(source: MysqlSource, connect: () => Promise<ClientConnection>) {
    this.#source = source;
    this.#connect = connect;
    this.#permits = new Permits(source.connections);
  }

  async take(): Promise<MysqlConnection> {
    await this.#permits.take();
    try {
      return this.#takeIdle() ?? await this.#open();
    } catch (error) {
      this.#permits.give();
      throw error;
    }
  }

  give(connection: MysqlConnection): void {
    // Whoever takes it next would wait for what nobody waits for any more.
    if (connection.isBusy) connection.drop();
    if (connection.isLost) this.#all.delete(connection);
    else this.#idle.push(connection);
    this.#permits.give();
  }

  async close(reason: Error): Promise<void> {
    this.#closed = reason;
    const allBack = this.#permits.close(reason);
    await deadline(MILLISECONDS_TO_FINISH, allBack, () => reason).catch(() => {});
    await Promise.all(Array.from(this.#all, (connection) => connection.close()));
  }

  /** The one that was used last: the others may grow old. */
  #takeIdle(): MysqlConnection | undefined {
    for (let connection; (connection = this.#idle.pop()) !== undefined;) {
      if (connection.idleTime > MILLISECONDS_IDLE) connection.drop();
      if (!connection.isLost) return connection;
      this.#all.delete(connection);
    }
    return undefined;
  }

  async #open(): Promise<MysqlConnection> {
    const client = await attempted(this.#connect());
    const connection = await MysqlConnection.open(client, this.#source);
    if (this.#closed !== undefined) connection.drop();
    if (this.#closed !== undefined) throw this.#closed;
    this.#all.add(connection);
    return connection;
  }
}

/** Borrows connections of the caller's pool, and sets each of them up once. */
class TheirPool implements ConnectionPool {
  readonly #source: MysqlSource;
  readonly #pool: MysqlCallbackPool;
  readonly #known = new WeakMap<ClientConnection, MysqlConnection>();
  #closed: Error | undefined;

  constructor(source: MysqlSource, pool: MysqlCallbackPool) {
    this.#source = source;
    this.#pool = pool;
  }

  async take(): Promise<MysqlConnection> {
    if (this.#closed !== undefined) throw this.#closed;
    const client = await attempted(this.#getConnection());
    const connection = this.#known.get(client) ?? await this.#setUp(client);
    this.#known.set(client, connection);
    return connection;
  }

  give(connection: MysqlConnection): void {
    if (connection.isBusy) connection.drop();
    if (!connection.isLost) connection.release();
  }

  close(reason: Error): Promise<void> {
    this.#closed = reason;
    return Promise.resolve();
  }

  #getConnection(): Promise<ClientConnection> {
    return new Promise((resolve, reject) =>
      this.#pool.getConnection((error, connection) => {
        if (error) reject(error);
        else resolve(connection as ClientConnection);
      })
    );
  }

  async #setUp(client: ClientConnection): Promise<MysqlConnection> {
    if (((client.config?.clientFlags ?? 0) & FOUND_ROWS) === 0) {
      client.release?.();
      throw refusedPool(
        "its connections count rows that were changed, not those that were found; " +
          "make it without the flag -FOUND_ROWS",
      );
    }
    const connection = await MysqlConnection.open(client, this.#source);
    try {
      await connection.run("SELECT ? AS one", [1n]);
      return connection;
    } catch (error) {
      connection.drop();
      if ((error as DriverError).kind !== "other") throw error;
      throw refusedPool("its mysql2 is another than Holdfast's; make it with the same version");
    }
  }
}

function refusedPool(reason: string): DriverError {
  return new DriverError("unusable", `Cannot use this pool: ${reason}`);
}

async function attempted(opening: Promise<ClientConnection>): Promise<ClientConnection> {
  try {
    return await opening;
  } catch (error) {
    throw failure(error, "connect");
  }
}

const FOUND_ROWS = 2;
const MILLISECONDS_TO_FINISH = 5000;
/** Well before the server ends what is idle. */
const MILLISECONDS_IDLE = 30_000;
