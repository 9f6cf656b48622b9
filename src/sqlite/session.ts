import { DriverError } from "../errors.ts";
import type { QueryResult, Session, SqlValue } from "../driver/driver.ts";
import type { Steps } from "../driver/steps.ts";
import type { SqliteConnection } from "./connection.ts";
import { classify } from "./result_code.ts";

/** A turn on the one connection: inside the gate for a transaction, or for a single statement. */
export class SqliteSession implements Session {
  /** A database in this process is never lost. */
  readonly lost: AbortSignal = NEVER;
  readonly #connection: SqliteConnection;
  #inTransaction = false;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  async query(text: string, params: readonly SqlValue[] = []): Promise<QueryResult> {
    if (this.#inTransaction) return this.#connection.run(text, params);
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
    if (this.#inTransaction) return paramSets.map((params) => this.#connection.run(text, params));
    return await this.transact(runTexts(text, paramSets));
  }

  async transact<T>(steps: Steps<T>): Promise<T> {
    this.#checkNone();
    await this.#connection.enter();
    try {
      const finish = await this.#connection.whenFree(() => {
        this.#connection.begin();
        return this.#runAll(steps);
      });
      return await finish();
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
    await this.#commit();
    this.#leave();
  }

  rollback(): Promise<void> {
    return this.release();
  }

  // deno-lint-ignore require-await -- an error of the rollback is a rejection
  async release(): Promise<void> {
    if (!this.#inTransaction) return;
    try {
      this.#connection.rollback();
    } finally {
      this.#leave();
    }
  }

  #checkNone(): void {
    if (!this.#inTransaction) return;
    throw new DriverError("other", "Cannot begin: this session has a transaction open; end it");
  }

  /**
   * Runs the steps and commits, all in this turn, so that nothing else of this process comes
   * between and no other connection of it, waiting without a turn for us, waits in vain.
   *
   * @returns how it went, which is told later: a failure is no reason to try the BEGIN again
   */
  #runAll<T>(steps: Steps<T>): () => T | Promise<T> {
    try {
      const value = this.#runSteps(steps);
      return this.#tryCommit(value);
    } catch (error) {
      this.#connection.rollback();
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

  /** Without WAL, which a caller's handle may lack, a reader in another process can be in the way. */
  #tryCommit<T>(value: T): () => T | Promise<T> {
    try {
      this.#connection.run("COMMIT");
      return () => value;
    } catch (error) {
      if (classify(error) !== "conflict") throw error;
      return async () => {
        try {
          await this.#commit();
          return value;
        } finally {
          this.#connection.rollback();
        }
      };
    }
  }

  #commit(): Promise<unknown> {
    return this.#connection.whenFree(() => this.#connection.run("COMMIT"));
  }

  #leave(): void {
    this.#inTransaction = false;
    this.#connection.leave();
  }
}

function* runTexts(
  text: string,
  paramSets: readonly (readonly SqlValue[])[],
): Steps<readonly QueryResult[]> {
  return yield { text, paramSets };
}

const NEVER = new AbortController().signal;
