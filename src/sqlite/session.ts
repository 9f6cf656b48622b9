import { DriverError } from "../errors.ts";
import type { LockHolder, QueryResult, Session, SqlValue } from "../driver/driver.ts";
import { runText, type Steps } from "../driver/steps.ts";
import type { SqliteConnection } from "./connection.ts";
import { classify } from "./result_code.ts";

/** A turn on the one connection: inside the gate for a transaction, or for a single statement. */
export class SqliteSession implements Session {
  /** A database in this process is never lost. */
  readonly lost: AbortSignal = NEVER;
  readonly #connection: SqliteConnection;
  #inTransaction = false;
  #handle: object | undefined;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  get handle(): unknown {
    if (!this.#inTransaction) return undefined;
    let handle: object | undefined;
    return handle = this.#handle ??= this.#connection.handleWhile(() => this.#handle === handle);
  }

  async query(text: string, params: readonly SqlValue[] = []): Promise<QueryResult> {
    if (this.#inTransaction) return this.#runInside(text, params);
    await this.#connection.enter();
    try {
      return await this.#connection.whenFree(() => this.#connection.runAlone(text, params));
    } finally {
      this.#connection.leave();
    }
  }

  async queryEach(
    text: string,
    paramSets: readonly (readonly SqlValue[])[],
  ): Promise<readonly QueryResult[]> {
    if (this.#inTransaction) return paramSets.map((params) => this.#runInside(text, params));
    return await this.transact(() => runText(text, paramSets));
  }

  async transact<T>(makeSteps: () => Steps<T>): Promise<T> {
    this.#checkNone();
    await this.#connection.enter();
    try {
      const tell = await this.#connection.whenFree(() => this.#runAll(makeSteps));
      return tell();
    } finally {
      this.#connection.leave();
    }
  }

  async begin(): Promise<void> {
    this.#checkNone();
    await this.#connection.enter();
    try {
      await this.#connection.whenFree(() => this.#connection.begin());
      this.#inTransaction = true;
    } finally {
      if (!this.#inTransaction) this.#connection.leave();
    }
  }

  async commit(): Promise<void> {
    this.#checkOpen();
    await this.#connection.whenFree(() => this.#connection.run("COMMIT"));
    this.#connection.locks.unlock(this);
    this.#leave();
  }

  /** The lock is this session's, not a transaction's: there need be none. */
  tryLock(key: string): Promise<LockHolder | undefined> {
    return Promise.resolve(this.#connection.locks.tryLock(key, this) ? THIS_PROCESS : undefined);
  }

  rollback(): Promise<void> {
    return this.release();
  }

  // deno-lint-ignore require-await -- an error of the rollback is a rejection
  async release(): Promise<void> {
    this.#connection.locks.unlock(this);
    if (!this.#inTransaction) return;
    try {
      this.#connection.rollback();
    } finally {
      this.#leave();
    }
  }

  #runInside(text: string, params: readonly SqlValue[]): QueryResult {
    this.#checkOpen();
    return this.#connection.run(text, params);
  }

  /** Whoever writes through the handle may have ended the transaction. */
  #checkOpen(): void {
    if (this.#connection.inTransaction) return;
    throw new DriverError(
      "other",
      "Cannot go on in this transaction: it was ended from outside; leave COMMIT and ROLLBACK to " +
        "the one who has opened it",
    );
  }

  #checkNone(): void {
    if (!this.#inTransaction) return;
    throw new DriverError("other", "Cannot begin: this session has a transaction open; end it");
  }

  /**
   * Begins, runs the steps and commits, all in this turn, so that nothing else of this process comes
   * between, and no other connection of it that waits without giving way waits in vain. A conflict,
   * which without WAL the COMMIT can meet with too, is thrown, and all of it tried again.
   *
   * @returns what tells how it went
   */
  #runAll<T>(makeSteps: () => Steps<T>): () => T {
    this.#connection.begin();
    try {
      const value = this.#runSteps(makeSteps());
      this.#connection.run("COMMIT");
      return () => value;
    } catch (error) {
      this.#connection.rollback();
      if (classify(error) === "conflict") throw error;
      return () => {
        throw error;
      };
    }
  }

  #runSteps<T>(steps: Steps<T>): T {
    let next = steps.next();
    while (!next.done) {
      const { text, paramSets } = next.value;
      next = steps.next(paramSets.map((params) => this.#connection.run(text, params)));
    }
    return next.value;
  }

  #leave(): void {
    this.#inTransaction = false;
    this.#handle = undefined;
    this.#connection.leave();
  }
}

/** No statement asks who holds a lock: nobody else can. */
const THIS_PROCESS: LockHolder = 1n;
const NEVER = new AbortController().signal;
