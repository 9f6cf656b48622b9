import { DriverError } from "../errors.ts";
import type { QueryResult, Session, SqlValue } from "../driver/driver.ts";
import type { SqliteConnection } from "./connection.ts";

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
      await this.#connection.untilOthersFinish();
      return await this.#connection.runWhenFree(text, params);
    } finally {
      this.#connection.leave();
    }
  }

  async queryEach(
    text: string,
    paramSets: readonly (readonly SqlValue[])[],
  ): Promise<readonly QueryResult[]> {
    if (this.#inTransaction) return paramSets.map((params) => this.#connection.run(text, params));
    await this.begin();
    try {
      const results = paramSets.map((params) => this.#connection.run(text, params));
      await this.commit();
      return results;
    } finally {
      await this.release();
    }
  }

  async begin(): Promise<void> {
    if (this.#inTransaction) {
      throw new DriverError("other", "Cannot begin: this session has a transaction open; end it");
    }
    await this.#connection.enter();
    try {
      await this.#connection.begin();
      this.#inTransaction = true;
    } finally {
      if (!this.#inTransaction) this.#connection.leave();
    }
  }

  async commit(): Promise<void> {
    // Without WAL, which a caller's handle may lack, a reader in another process can be in the way.
    await this.#connection.runWhenFree("COMMIT");
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

  #leave(): void {
    this.#inTransaction = false;
    this.#connection.leave();
  }
}

const NEVER = new AbortController().signal;
