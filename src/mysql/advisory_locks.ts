import type { LockHolder, SqlRow, SqlValue } from "../driver/driver.ts";
import type { MysqlConnection } from "./connection.ts";
import { lockName } from "./lock_name.ts";
import { lockUntold } from "./refusals.ts";

/** Runs a statement on the connection whose locks these are. */
export type Run = (text: string, params: readonly SqlValue[]) => Promise<readonly SqlRow[]>;

/**
 * The locks that a connection has taken. They are the connection's, not the transaction's: neither
 * COMMIT nor ROLLBACK gives them back. The server counts how often one is taken: each is only once.
 */
export class AdvisoryLocks {
  readonly #connection: MysqlConnection;
  readonly #holders = new Map<string, LockHolder>();
  /** Whether the connection may have one of which nobody knows. */
  #isUnsure = false;

  constructor(connection: MysqlConnection) {
    this.#connection = connection;
  }

  /** Takes the lock of a key unless it is taken already; `undefined` if somebody else has it. */
  async tryLock(key: string, run: Run): Promise<LockHolder | undefined> {
    const holder = this.#holders.get(key) ?? await this.#take(key, run);
    if (holder !== undefined) this.#holders.set(key, holder);
    return holder;
  }

  /** Gives all back. A connection that may still have one, since nobody has confirmed it, is ended. */
  async giveBack(): Promise<void> {
    const keys = [...this.#holders.keys()];
    this.#holders.clear();
    const confirmed = !this.#isUnsure && await this.#release(keys);
    if (!confirmed) this.#connection.drop();
  }

  async #take(key: string, run: Run): Promise<LockHolder | undefined> {
    const wasUnsure = this.#isUnsure;
    this.#isUnsure = true;
    const [row] = await run(TAKE, [key]);
    const { locked = null, holder } = row ?? {};
    if (locked === null) throw lockUntold();
    this.#isUnsure = wasUnsure;
    return Number(locked) === 1 ? BigInt(holder as number | bigint) : undefined;
  }

  async #release(keys: readonly string[]): Promise<boolean> {
    const replies = await Promise.allSettled(
      keys.map((key) => this.#connection.run(GIVE_BACK, [key])),
    );
    return replies.every((reply) =>
      reply.status === "fulfilled" && Number(reply.value.rows[0]?.confirmed) === 1
    );
  }
}

const TAKE = `SELECT GET_LOCK(${lockName("?")}, 0) AS locked, CONNECTION_ID() AS holder`;
const GIVE_BACK = `SELECT RELEASE_LOCK(${lockName("?")}) AS confirmed`;
