import type { LockHolder, QueryResult, SqlRow, SqlValue } from "../driver/driver.ts";
import type { DriverError } from "../errors.ts";
import { AdvisoryLocks } from "./advisory_locks.ts";
import type { PostgresSql, PostgresStatements } from "./client.ts";
import { excerpt, isAfterFailure } from "./failure.ts";
import { HeldConnection } from "./held_connection.ts";
import { transactionHandle } from "./transaction_handle.ts";
import * as refusals from "./refusals.ts";
import type { Reply, Sending } from "./values.ts";

/** How transactions are run. */
export interface TransactionOptions extends Sending {
  /** Server settings that each transaction makes for itself, where no connection comes with them. */
  readonly localSettings: Readonly<Record<string, string>>;
}

/** A transaction on a connection that is held for it, and the locks of that connection. */
export class Transaction {
  readonly #connection: HeldConnection;
  readonly #options: TransactionOptions;
  readonly #locks: AdvisoryLocks;
  readonly #lost = new AbortController();
  #state: "open" | "committing" | "ended" | "lost" = "open";
  #failed: DriverError | undefined;
  #handle: PostgresStatements | undefined;
  #checkpoint: Promise<void> | undefined;

  private constructor(connection: HeldConnection, options: TransactionOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#locks = new AdvisoryLocks(connection);
    if (connection.lost.aborted) this.#lose(connection.lost.reason);
    connection.lost.addEventListener("abort", () => this.#lose(connection.lost.reason));
  }

  /** Opens a transaction, READ COMMITTED whatever the server's default. */
  static async open(client: PostgresSql, options: TransactionOptions): Promise<Transaction> {
    return new Transaction(await HeldConnection.open(client, options), options);
  }

  /** Resolves when the connection is free, or gone: then with the reason. */
  get over(): Promise<DriverError | undefined> {
    return this.#connection.over;
  }

  /** Aborts, with a `DriverError`, when the connection is lost before the transaction has ended. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Whether the connection was lost. */
  get isLost(): boolean {
    return this.#state === "lost";
  }

  /** Whether it has been committed or rolled back. */
  get hasEnded(): boolean {
    return this.#state === "ended";
  }

  /** The transaction as the client's own users know it. */
  get handle(): PostgresStatements {
    return this.#handle ??= transactionHandle(
      this.#connection.statements,
      () => this.#refuseUnlessOpen("use a transaction"),
    );
  }

  /** Makes the settings that no connection comes with, for as long as nothing is committed. */
  async applySettings(): Promise<void> {
    const settings = Object.entries(this.#options.localSettings);
    if (settings.length === 0) return;
    const calls = settings.map((_, index) =>
      `set_config($${2 * index + 1}::text, $${2 * index + 2}::text, true)`
    );
    await this.query(`SELECT ${calls.join(", ")}`, settings.flat());
  }

  /** Runs one statement. */
  async query(text: string, params: readonly SqlValue[]): Promise<QueryResult> {
    const attempt = excerpt(text);
    if (ENDS_TRANSACTION.test(text)) throw refusals.wouldEndUnseen(attempt);
    const { rows, changes } = await this.#run(attempt, text, params);
    return { rows, changes };
  }

  /** Takes the lock of a key; `undefined` if another connection has it. */
  async tryLock(key: string): Promise<LockHolder | undefined> {
    const attempt = "take a lock";
    this.#refuseUnlessOpen(attempt);
    return await this.#locks.tryLock(
      key,
      async (text, params): Promise<readonly SqlRow[]> =>
        (await this.#run(attempt, text, params)).rows,
    );
  }

  /** Commits, and goes on in another transaction with the same locks. */
  async checkpoint(): Promise<void> {
    this.#refuseUnlessOpen("commit");
    this.#checkpoint = this.#commitAndGoOn();
    await this.#checkpoint;
  }

  /** Commits. Rejects if nothing was committed, and also if nobody can tell. */
  async commit(): Promise<void> {
    const committed = await this.#commit();
    this.#end();
    await this.#locks.giveBack();
    this.#connection.leave(committed ? "commit" : "roll back");
    if (!committed) throw refusals.nothingCommitted(this.#failed);
  }

  /** Rolls back, and resolves when that is done. On a lost connection the server has done it. */
  async rollback(): Promise<void> {
    await this.#checkpoint?.catch(() => {});
    if (this.#state === "open") {
      this.#end();
      await this.#rollBackBeneathLocks();
      await this.#connection.leave("roll back");
    }
    await this.over;
  }

  async #commitAndGoOn(): Promise<void> {
    const committed = await this.#commit();
    if (this.#state === "committing") this.#state = "open";
    const failed = this.#failed;
    if (!this.isLost) this.#failed = undefined;
    // Where they fail, so does the next statement.
    await this.applySettings().catch(() => {});
    if (!committed) throw refusals.nothingCommitted(failed);
  }

  /** Resolves to whether the server has committed; otherwise it has rolled back. */
  async #commit(): Promise<boolean> {
    this.#refuseUnlessOpen("commit");
    this.#state = "committing";
    await this.#connection.idle();
    if (this.isLost) throw refusals.lostBefore("commit", this.#failed);
    const [, committed] = await Promise.allSettled([this.#checkConstraints(), this.#sendCommit()]);
    if (committed.status === "rejected") throw committed.reason;
    return committed.value.command === "COMMIT";
  }

  /**
   * When COMMIT itself fails, the client has the connection back at once, locks and all. So what is
   * deferred to COMMIT fails here.
   */
  async #checkConstraints(): Promise<void> {
    if (this.#connection.isClean) return;
    await this.#send("commit", "SET CONSTRAINTS ALL IMMEDIATE", [], false);
  }

  /**
   * AND CHAIN opens an empty transaction, which is what the client's own COMMIT or ROLLBACK then
   * ends. Without it the client would take the connection back to its pool here, and run that
   * statement in the midst of whatever the next holder does.
   */
  async #sendCommit(): Promise<Reply> {
    try {
      return await this.#connection.send("commit", "COMMIT AND CHAIN", [], false);
    } catch (error) {
      const reason = error as DriverError;
      if (reason.kind === "disconnected") throw refusals.outcomeUnknown(reason);
      // The server has rolled back, and the client has taken the connection: it is left alone.
      this.#end();
      this.#locks.letGo();
      throw reason;
    }
  }

  async #rollBackBeneathLocks(): Promise<void> {
    if (this.#connection.isClean) return;
    await this.#connection.idle();
    await this.#connection.send("roll back", "ROLLBACK AND CHAIN", [], false).catch(() => {});
    await this.#locks.giveBack();
  }

  async #run(attempt: string, text: string, params: readonly SqlValue[]): Promise<Reply> {
    this.#refuseUnlessOpen(attempt);
    return await this.#send(attempt, text, params, this.#options.prepare);
  }

  async #send(
    attempt: string,
    text: string,
    params: readonly SqlValue[],
    prepare: boolean,
  ): Promise<Reply> {
    try {
      return await this.#connection.send(attempt, text, params, prepare);
    } catch (error) {
      if (!isAfterFailure(error)) this.#failed = error as DriverError;
      throw error;
    }
  }

  #lose(reason: DriverError): void {
    if (this.#state === "ended") return;
    this.#state = "lost";
    this.#failed = reason;
    this.#lost.abort(reason);
  }

  #end(): void {
    if (this.#state !== "lost") this.#state = "ended";
  }

  #refuseUnlessOpen(attempt: string): void {
    if (this.#state === "lost") throw refusals.lostBefore(attempt, this.#failed);
    if (this.#state !== "open") throw refusals.notOpen(attempt, this.#state);
  }
}

/** Statements after which the client gives the connection to somebody else. */
const ENDS_TRANSACTION =
  /^\s*(commit|end|abort|prepare\s+transaction|rollback(?!\s+((work|transaction)\s+)?to\b))\b/i;
