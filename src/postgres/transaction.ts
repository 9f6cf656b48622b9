import type { QueryResult, SqlValue } from "../driver/driver.ts";
import { deadline, every } from "../driver/real_time.ts";
import type { DriverError } from "../errors.ts";
import type { PostgresSql, PostgresStatements } from "./client.ts";
import { excerpt, failure, noAnswer } from "./failure.ts";
import * as refusals from "./refusals.ts";
import { type Reply, send, type Sending } from "./values.ts";

/**
 * A transaction that stays open until it is told how to end: a `begin` of the client whose callback
 * waits. `begin` is rejected as soon as the connection is lost, which nothing else would tell.
 *
 * What is sent on a connection that the client knows to be closed throws outside of any promise and
 * ends the process. So nothing is sent, not even by letting the callback return, once it is lost.
 */
export class Transaction {
  readonly #sql: PostgresStatements;
  readonly #sending: Sending;
  readonly #end = Promise.withResolvers<void>();
  readonly #loss = Promise.withResolvers<never>();
  readonly #over = Promise.withResolvers<void>();
  readonly #running = new Set<Promise<unknown>>();
  readonly #heart: { cancel(): void };
  #state: "open" | "committing" | "ended" | "lost" = "open";
  #failed: DriverError | undefined;

  private constructor(sql: PostgresStatements, sending: Sending) {
    this.#sql = sql;
    this.#sending = sending;
    this.#loss.promise.catch(() => {});
    this.#heart = every(sending.heartbeat, () => this.#beat());
  }

  /** Opens a transaction, READ COMMITTED whatever the server's default. */
  static open(client: PostgresSql, sending: Sending): Promise<Transaction> {
    const opened = Promise.withResolvers<Transaction>();
    let transaction: Transaction | undefined;
    let late = false;
    const whole = client.begin("isolation level read committed", (sql) => {
      if (late) return Promise.resolve();
      transaction = new Transaction(sql, sending);
      opened.resolve(transaction);
      return transaction.#end.promise;
    });
    const close = (error?: unknown): void => {
      if (transaction === undefined) opened.reject(failure(error, "begin a transaction"));
      else transaction.#close(error);
    };
    whole.then(() => close(), close);
    return deadline(sending.patience, opened.promise, () => {
      late = true;
      return noAnswer("begin a transaction", sending.patience);
    });
  }

  /** Resolves when the connection is free of it, or gone. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** Rejects when the connection is lost; never resolves. */
  get loss(): Promise<never> {
    return this.#loss.promise;
  }

  /** Whether the connection is lost. */
  get isLost(): boolean {
    return this.#state === "lost";
  }

  /** Runs one statement. */
  async query(text: string, params: readonly SqlValue[]): Promise<QueryResult> {
    const attempt = excerpt(text);
    if (ENDS_TRANSACTION.test(text)) throw refusals.wouldEndUnseen(attempt);
    this.#refuseUnlessOpen(attempt);
    try {
      const answer = send(this.#sql, text, params, this.#sending.prepare);
      const { rows, changes } = await this.#track(attempt, answer);
      return { rows, changes };
    } catch (error) {
      const reason = failure(error, attempt);
      if (!reason.message.includes(TRANSACTION_HAS_FAILED)) this.#failed = reason;
      throw reason;
    }
  }

  /** Commits. Rejects if nothing was committed, and also if nobody can tell. */
  async commit(): Promise<void> {
    this.#refuseUnlessOpen("commit");
    this.#state = "committing";
    this.#heart.cancel();
    await Promise.allSettled(this.#running);
    if (this.isLost) throw refusals.lostBefore("commit", this.#failed);
    const { command } = await this.#sendCommit();
    this.#finish(command === "COMMIT");
    if (command !== "COMMIT") throw refusals.nothingCommitted(this.#failed);
  }

  /** Rolls back, and resolves when that is done. On a lost connection the server has done it. */
  async rollback(): Promise<void> {
    if (this.#state === "open") this.#finish(false);
    const { patience } = this.#sending;
    await deadline(patience, this.over, () => noAnswer("roll back", patience)).catch((reason) => {
      this.#loss.reject(reason);
      this.#over.resolve();
    });
  }

  /**
   * AND CHAIN opens an empty transaction, which is what the client's own COMMIT or ROLLBACK then
   * ends. Without it the client would take the connection back to its pool here, and run that
   * statement in the midst of whatever the next holder does.
   */
  async #sendCommit(): Promise<Reply> {
    try {
      return await this.#track("commit", send(this.#sql, "COMMIT AND CHAIN", [], false));
    } catch (error) {
      const reason = failure(error, "commit");
      if (reason.kind === "disconnected") throw refusals.outcomeUnknown(reason);
      // The server has rolled back, and the client has taken the connection: it is left alone.
      this.#state = "ended";
      this.#over.resolve();
      throw reason;
    }
  }

  /** Waits for an answer; the client itself does not always notice that none can come any more. */
  async #track<T>(attempt: string, answer: Promise<T>): Promise<T> {
    const { patience } = this.#sending;
    const waiting = deadline(patience, Promise.race([answer, this.loss]), () => {
      const late = noAnswer(attempt, patience);
      this.#giveUp(late);
      return late;
    });
    this.#running.add(waiting);
    try {
      return await waiting;
    } catch (error) {
      const reason = failure(error, attempt);
      if (reason.kind === "disconnected") this.#lose(reason);
      throw error;
    } finally {
      this.#running.delete(waiting);
    }
  }

  /** An empty statement: the server takes it even when the transaction has failed. */
  #beat(): void {
    if (this.#running.size > 0 || this.#state !== "open") return;
    const beat = Promise.resolve(this.#sql.unsafe("", [], { prepare: false, simple: true }));
    this.#track("keep a transaction open", beat).catch(() => {});
  }

  /** The connection may be there still: should it wake up, the client's ROLLBACK frees it. */
  #giveUp(reason: DriverError): void {
    if (this.isLost) return;
    this.#lose(reason);
    this.#end.reject(reason);
  }

  #lose(reason: DriverError): void {
    if (this.#state === "lost" || this.#state === "ended") return;
    this.#state = "lost";
    this.#failed = reason;
    this.#heart.cancel();
    this.#loss.reject(reason);
    this.#over.resolve();
  }

  /** Lets the client end the transaction. */
  #finish(well: boolean): void {
    this.#state = "ended";
    this.#heart.cancel();
    if (well) this.#end.resolve();
    else this.#end.reject(ROLLED_BACK);
  }

  /** The client's `begin` has settled. */
  #close(error?: unknown): void {
    if (this.#state !== "ended") this.#lose(failure(error, "keep a transaction open"));
    this.#over.resolve();
  }

  #refuseUnlessOpen(attempt: string): void {
    if (this.isLost) throw refusals.lostBefore(attempt, this.#failed);
    if (this.#state !== "open") throw refusals.endedBefore(attempt);
  }
}

const TRANSACTION_HAS_FAILED = "25P02";
const ROLLED_BACK = new Error("Rolled back");

/** Statements after which the client gives the connection to somebody else. */
const ENDS_TRANSACTION =
  /^\s*(commit|end|abort|prepare\s+transaction|rollback(?!\s+((work|transaction)\s+)?to\b))\b/i;
