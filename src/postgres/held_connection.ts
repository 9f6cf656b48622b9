import type { SqlValue } from "../driver/driver.ts";
import { deadline, every } from "../driver/real_time.ts";
import type { DriverError } from "../errors.ts";
import type { PostgresSql, PostgresStatements } from "./client.ts";
import { failure, noAnswer } from "./failure.ts";
import { freeLocks, type StrayLocks } from "./free_locks.ts";
import { lostBefore } from "./refusals.ts";
import { type Reply, send, type Sending } from "./values.ts";

/**
 * A connection in a transaction, held until it is told to go: a `begin` of the client whose callback
 * waits. `begin` is rejected as soon as the connection is lost, which nothing else would tell.
 *
 * What is sent on a connection that the client knows to be closed throws outside of any promise and
 * ends the process. So nothing is sent, not even by letting the callback return, once it is lost.
 */
export class HeldConnection {
  /** Whether the client may use it for something else when it is given back. */
  isClean = true;
  readonly #client: PostgresSql;
  readonly #sql: PostgresStatements;
  readonly #sending: Sending;
  readonly #end = Promise.withResolvers<void>();
  readonly #loss = Promise.withResolvers<never>();
  readonly #lost = new AbortController();
  readonly #over = Promise.withResolvers<DriverError | undefined>();
  readonly #running = new Set<Promise<unknown>>();
  readonly #heart: { cancel(): void };
  #isLeft = false;

  private constructor(client: PostgresSql, sql: PostgresStatements, sending: Sending) {
    this.#client = client;
    this.#sql = sql;
    this.#sending = sending;
    this.#loss.promise.catch(() => {});
    this.#heart = every(sending.heartbeat, () => this.#beat());
  }

  /** Opens a transaction, READ COMMITTED whatever the server's default. */
  static open(client: PostgresSql, sending: Sending): Promise<HeldConnection> {
    const opened = Promise.withResolvers<HeldConnection>();
    let connection: HeldConnection | undefined;
    let late = false;
    const whole = client.begin("isolation level read committed", (sql) => {
      if (late) return Promise.resolve();
      connection = new HeldConnection(client, sql, sending);
      opened.resolve(connection);
      return connection.#end.promise;
    });
    const close = (error?: unknown): void => {
      if (connection === undefined) opened.reject(failure(error, "begin a transaction"));
      else connection.#close(error);
    };
    whole.then(() => close(), close);
    return deadline(sending.patience, opened.promise, () => {
      late = true;
      return noAnswer("begin a transaction", sending.patience);
    });
  }

  /** Resolves when the connection is free, or gone: then with the reason. */
  get over(): Promise<DriverError | undefined> {
    return this.#over.promise;
  }

  /** Aborts, with a `DriverError`, when the connection is lost before it has been left. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** What the client itself sends statements through. */
  get statements(): PostgresStatements {
    return this.#sql;
  }

  /** Runs one statement. A reply that does not come is a lost connection. */
  async send(
    attempt: string,
    text: string,
    params: readonly SqlValue[] = [],
    prepare: boolean = this.#sending.prepare,
  ): Promise<Reply> {
    if (this.#lost.signal.aborted) throw lostBefore(attempt, this.#lost.signal.reason);
    return await this.#track(attempt, send(this.#sql, text, params, prepare));
  }

  /** Resolves when nothing is in flight. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  /** Lets the client commit or roll back what is open, and resolves when the connection is free. */
  async leave(end: "commit" | "roll back"): Promise<void> {
    if (this.#isLeft || this.#lost.signal.aborted) return;
    this.#stopHolding();
    if (end === "commit") this.#end.resolve();
    else this.#end.reject(ROLLED_BACK);
    await this.#untilOver(end);
  }

  /** The client has taken the connection already: nothing more is sent on it. */
  letGo(locks?: StrayLocks): void {
    this.#stopHolding();
    this.#over.resolve(locks && freeLocks(this.#client, locks, this.#sending.patience));
  }

  /** Has the server end the connection, and resolves when it is gone. */
  async terminate(): Promise<void> {
    if (this.#isLeft || this.#lost.signal.aborted) return;
    this.#stopHolding();
    this.#sendTermination();
    await this.#untilOver("end a connection");
  }

  /** Waits for an answer; the client itself does not always notice that none can come any more. */
  async #track<T>(attempt: string, answer: Promise<T>): Promise<T> {
    const { patience } = this.#sending;
    const waiting = deadline(patience, Promise.race([answer, this.#loss.promise]), () => {
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
      throw reason;
    } finally {
      this.#running.delete(waiting);
    }
  }

  /** An empty statement: the server takes it even when the transaction has failed. */
  #beat(): void {
    if (this.#running.size > 0) return;
    const beat = Promise.resolve(this.#sql.unsafe("", [], { prepare: false, simple: true }));
    this.#track("keep a transaction open", beat).catch(() => {});
  }

  async #untilOver(attempt: string): Promise<void> {
    const { patience } = this.#sending;
    await deadline(patience, this.over, () => noAnswer(attempt, patience))
      .catch((reason) => this.#over.resolve(reason));
  }

  /** The connection may be there still: should it wake up, it is free, or ended. */
  #giveUp(reason: DriverError): void {
    if (this.#isLeft || this.#lost.signal.aborted) return;
    this.#lose(reason);
    if (this.isClean) this.#end.reject(reason);
    else this.#sendTermination();
  }

  /**
   * The server ends the connection when nothing is in flight, so that its last words reach nobody's
   * statement. That needs no right, which to end a process of the server does.
   */
  #sendTermination(): void {
    const termination = this.#sql.unsafe(END_WHEN_IDLE, [], { prepare: false, simple: true });
    Promise.resolve(termination).catch(() => {});
  }

  #lose(reason: DriverError): void {
    if (this.#isLeft || this.#lost.signal.aborted) return;
    this.#heart.cancel();
    this.#lost.abort(reason);
    this.#loss.reject(reason);
    this.#over.resolve(reason);
  }

  #stopHolding(): void {
    this.#isLeft = true;
    this.#heart.cancel();
  }

  /** The client's `begin` has settled. */
  #close(error?: unknown): void {
    if (!this.#isLeft) this.#lose(failure(error, "keep a transaction open"));
    this.#over.resolve(undefined);
  }
}

const ROLLED_BACK = new Error("Rolled back");

const END_WHEN_IDLE = "ROLLBACK AND CHAIN; SET LOCAL idle_in_transaction_session_timeout = '1ms'";
