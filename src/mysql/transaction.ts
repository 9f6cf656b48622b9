import { AsyncLocalStorage } from "node:async_hooks";
import type { LockHolder, QueryResult, SqlRow, SqlValue } from "../driver/driver.ts";
import { every } from "../driver/real_time.ts";
import type { DriverError } from "../errors.ts";
import { AdvisoryLocks } from "./advisory_locks.ts";
import { numberOf } from "./classify.ts";
import type { MysqlConnection } from "./connection.ts";
import { excerpt } from "./failure.ts";
import {
  endedBefore,
  endedUnseen,
  lostBefore,
  outcomeUnknown,
  rolledBackBefore,
} from "./refusals.ts";
import type { MysqlTransaction } from "./tx.ts";
import type { Reply } from "./values.ts";

/**
 * A transaction that stays open until it is told how to end. Once the server may have rolled it
 * back, as after a deadlock, whatever is sent would be committed at once and on its own: so nothing
 * is, until the transaction is rolled back here too.
 */
export class Transaction {
  readonly #connection: MysqlConnection;
  readonly #locks: AdvisoryLocks;
  readonly #heart: { cancel(): void };
  #state: "open" | "failed" | "ended" | "lost" = "open";
  #reason: DriverError | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #handle: Transaction["handle"] | undefined;
  /** Whoever writes through the handle may live in virtual time; what is sent does not. */
  readonly #outside: <T>(send: () => T) => T = AsyncLocalStorage.snapshot();

  private constructor(connection: MysqlConnection, onLoss: (reason: DriverError) => void) {
    this.#connection = connection;
    this.#locks = new AdvisoryLocks(connection);
    this.#heart = every(connection.heartbeat, () => this.#beat());
    connection.watcher = (reason) => {
      this.#become("lost", reason);
      onLoss(reason);
    };
  }

  /** Opens a transaction. */
  static async open(
    connection: MysqlConnection,
    onLoss: (reason: DriverError) => void,
  ): Promise<Transaction> {
    await connection.run("START TRANSACTION", []);
    return new Transaction(connection, onLoss);
  }

  /** Whether the connection was lost while it was open. */
  get isLost(): boolean {
    return this.#state === "lost";
  }

  /** The transaction for others to write through, in the manner of `mysql2/promise`. */
  get handle(): MysqlTransaction & { readonly query: MysqlTransaction["execute"] } {
    const execute: MysqlTransaction["execute"] = async (text, values = []) => {
      const { rows, changes } = await this.#outside(() => this.query(text, values));
      const isWritten = rows.length === 0 || changes > 0;
      const insertId = rows[0]?.id ?? 0;
      return [
        isWritten && !RETURNS_ROWS.test(text) ? { affectedRows: changes, insertId } : rows,
        [],
      ];
    };
    return this.#handle ??= { execute, query: execute };
  }

  /** Runs one statement, once those before it are done: what they tell may rule it out. */
  query(text: string, params: readonly SqlValue[]): Promise<QueryResult> {
    return this.#inTurn(() => this.#run(excerpt(text), text, params));
  }

  /** Takes the lock of a key; `undefined` if another connection has it. */
  tryLock(key: string): Promise<LockHolder | undefined> {
    return this.#inTurn(() => this.#lock(key));
  }

  /** Commits, and goes on in another transaction with the same locks. */
  checkpoint(): Promise<void> {
    return this.#inTurn(() => this.#commitAndGoOn());
  }

  /** Commits. Rejects if nothing was committed, and also if nobody can tell. */
  commit(): Promise<void> {
    return this.#inTurn(() => this.#commit());
  }

  /** Rolls back. Where the server cannot be told, the connection ends, and with it the transaction. */
  async rollback(): Promise<void> {
    if (this.#state === "lost") return;
    // Its locks may still be on their way back.
    if (this.#state === "ended") return void await this.#last;
    this.#end();
    await this.#inTurn(() => this.#rollBack());
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => {});
    return turn;
  }

  async #run(
    attempt: string,
    text: string,
    params: readonly SqlValue[],
  ): Promise<QueryResult> {
    this.#refuseUnlessOpen(attempt);
    try {
      const { rows, changes, inTransaction } = await this.#connection.run(text, params);
      if (inTransaction !== false) return { rows, changes };
    } catch (error) {
      const reason = error as DriverError;
      if (ROLLS_BACK.has(numberOf(reason.cause))) this.#become("failed", reason);
      throw reason;
    }
    const ended = endedUnseen(attempt);
    this.#become("failed", ended);
    throw ended;
  }

  async #lock(key: string): Promise<LockHolder | undefined> {
    const attempt = "take a lock";
    this.#refuseUnlessOpen(attempt);
    return await this.#locks.tryLock(
      key,
      async (text, params): Promise<readonly SqlRow[]> =>
        (await this.#run(attempt, text, params)).rows,
    );
  }

  async #commitAndGoOn(): Promise<void> {
    const { inTransaction } = await this.#sendCommit("COMMIT AND CHAIN");
    if (inTransaction === false) this.#become("failed", endedUnseen("commit"));
  }

  async #commit(): Promise<void> {
    await this.#sendCommit("COMMIT");
    this.#end();
    await this.#locks.giveBack();
  }

  async #sendCommit(text: string): Promise<Reply> {
    this.#refuseUnlessOpen("commit");
    try {
      return await this.#connection.run(text, []);
    } catch (error) {
      const reason = error as DriverError;
      this.#become("failed", reason);
      const isUnknown = reason.kind === "disconnected" || numberOf(reason.cause) === INTERRUPTED;
      throw isUnknown ? outcomeUnknown(reason) : reason;
    }
  }

  async #rollBack(): Promise<void> {
    try {
      await this.#connection.run("ROLLBACK", []);
      await this.#locks.giveBack();
    } catch {
      this.#connection.drop();
    }
  }

  #beat(): void {
    if (this.#state !== "open" || this.#connection.isBusy) return;
    this.#connection.ping().catch(() => {});
  }

  #become(state: "failed" | "lost", reason: DriverError): void {
    if (this.#state === "lost" || this.#state === "ended") return;
    this.#state = state;
    this.#reason = reason;
    this.#heart.cancel();
  }

  #end(): void {
    this.#state = "ended";
    this.#heart.cancel();
    this.#connection.watcher = undefined;
  }

  #refuseUnlessOpen(attempt: string): void {
    if (this.#state === "lost") throw lostBefore(attempt, this.#reason);
    if (this.#state === "failed") throw rolledBackBefore(attempt, this.#reason!);
    if (this.#state === "ended") throw endedBefore(attempt);
  }
}

/** After these the whole transaction is gone, or, by a setting of the server, may be. */
const ROLLS_BACK: ReadonlySet<number> = new Set([
  1020, // ER_CHECKREAD
  1205, // ER_LOCK_WAIT_TIMEOUT
  1213, // ER_LOCK_DEADLOCK
]);
const INTERRUPTED = 1317;
/** Statements whose reply is a list of rows, even of none. */
const RETURNS_ROWS = /^\s*(select|with|show|explain|describe|table|values|\()/i;
