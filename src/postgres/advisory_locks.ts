import type { LockHolder, SqlRow, SqlValue } from "../driver/driver.ts";
import { isAfterFailure } from "./failure.ts";
import type { HeldConnection } from "./held_connection.ts";
import { unfitKey } from "./refusals.ts";

/** Runs a statement on the connection whose locks these are. */
export type Run = (text: string, params: readonly SqlValue[]) => Promise<readonly SqlRow[]>;

/**
 * The locks that a connection has taken. They are the connection's, not the transaction's: neither
 * COMMIT nor ROLLBACK gives them back. The server counts how often one is taken: each is only once.
 */
export class AdvisoryLocks {
  readonly #connection: HeldConnection;
  /** By key; also those of which nobody knows whether the server has given them. */
  readonly #locks = new Map<string, Promise<LockHolder | undefined>>();
  #holder: LockHolder | undefined;

  constructor(connection: HeldConnection) {
    this.#connection = connection;
  }

  /** Takes the lock of a key unless it is taken already; `undefined` if somebody else has it. */
  async tryLock(key: string, run: Run): Promise<LockHolder | undefined> {
    if (key.includes("\0")) throw unfitKey(key);
    const lock = this.#locks.get(key) ?? this.#take(key, run);
    this.#locks.set(key, lock);
    this.#connection.isClean = false;
    return await lock;
  }

  /** Gives all back. A connection that may still have one, since nobody has confirmed it, is ended. */
  async giveBack(): Promise<void> {
    if (this.#connection.isClean) return;
    const replies = await Promise.allSettled(
      this.#locks.keys().map((key) => this.#connection.send("give a lock back", GIVE_BACK, [key])),
    );
    const confirmed = replies.every((reply) =>
      reply.status === "fulfilled" && reply.value.rows[0]?.confirmed === 1
    );
    if (!confirmed) return await this.#connection.terminate();
    this.#locks.clear();
    this.#connection.isClean = true;
  }

  /** The client has taken the connection: its locks are given back, or ended, from outside. */
  letGo(): void {
    if (this.#connection.isClean || this.#holder === undefined) return this.#connection.letGo();
    this.#connection.letGo({ holder: this.#holder, keys: [...this.#locks.keys()] });
  }

  async #take(key: string, run: Run): Promise<LockHolder | undefined> {
    try {
      const [row] = await run(TAKE, [key]);
      if (typeof row?.holder === "number") return this.#holder = BigInt(row.holder);
      this.#forget(key);
    } catch (error) {
      if (isAfterFailure(error)) this.#forget(key);
      throw error;
    }
  }

  #forget(key: string): void {
    this.#locks.delete(key);
    this.#connection.isClean = this.#locks.size === 0;
  }
}

/** Without a table, what is selected is evaluated exactly once. */
const TAKE = "SELECT CASE WHEN pg_try_advisory_lock(hashtextextended($1::text, 0)) " +
  "THEN pg_backend_pid() END AS holder";
const GIVE_BACK = "SELECT pg_advisory_unlock(hashtextextended($1::text, 0)) AS confirmed";
