import type { LockHolder, QueryResult, Session, SqlValue } from "../driver/driver.ts";
import { DriverError } from "../errors.ts";
import type { PostgresPool } from "./pool.ts";
import { lostBefore, noTransaction } from "./refusals.ts";
import type { Transaction } from "./transaction.ts";

/**
 * A turn on the pool. It holds a connection only while a transaction is open; a statement outside of
 * one goes to whichever connection is free.
 */
export class PostgresSession implements Session {
  readonly #pool: PostgresPool;
  readonly #lost = new AbortController();
  #transaction: Transaction | undefined;
  #beginning = false;

  constructor(pool: PostgresPool) {
    this.#pool = pool;
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  get handle(): unknown {
    return this.#transaction?.handle;
  }

  query(text: string, params: readonly SqlValue[] = []): Promise<QueryResult> {
    return (this.#transaction ?? this.#pool).query(text, params);
  }

  async queryEach(
    text: string,
    paramSets: readonly (readonly SqlValue[])[],
  ): Promise<readonly QueryResult[]> {
    if (paramSets.length === 0) return [];
    if (this.#transaction !== undefined) return await pipeline(this.#transaction, text, paramSets);
    await this.begin();
    try {
      const results = await pipeline(this.#transaction!, text, paramSets);
      await this.commit();
      return results;
    } finally {
      await this.rollback();
    }
  }

  async begin(): Promise<void> {
    if (this.#transaction?.isLost) throw lostBefore("begin", undefined);
    if (this.#transaction !== undefined || this.#beginning) {
      throw new DriverError("other", "Cannot begin: this session has a transaction open; end it");
    }
    this.#beginning = true;
    try {
      const transaction = await this.#pool.begin();
      const { lost } = transaction;
      if (lost.aborted) this.#lost.abort(lost.reason);
      lost.addEventListener("abort", () => this.#lost.abort(lost.reason));
      this.#transaction = transaction;
    } finally {
      this.#beginning = false;
    }
  }

  async checkpoint(): Promise<void> {
    const transaction = this.#transaction;
    if (transaction === undefined) throw noTransaction("commit");
    try {
      await transaction.checkpoint();
    } finally {
      if (transaction.hasEnded) this.#forget(transaction);
    }
  }

  async commit(): Promise<void> {
    const transaction = this.#transaction;
    if (transaction === undefined) throw noTransaction("commit");
    try {
      await transaction.commit();
    } finally {
      this.#forget(transaction);
    }
  }

  async rollback(): Promise<void> {
    const transaction = this.#transaction;
    if (transaction === undefined) return;
    await transaction.rollback();
    this.#forget(transaction);
  }

  async tryLock(key: string): Promise<LockHolder | undefined> {
    if (this.#transaction === undefined) throw noTransaction("take a lock");
    return await this.#transaction.tryLock(key);
  }

  release(): Promise<void> {
    return this.rollback();
  }

  /** One that is lost is kept: it refuses every further call. */
  #forget(transaction: Transaction): void {
    if (!transaction.isLost && this.#transaction === transaction) this.#transaction = undefined;
  }
}

/** All are sent before the first answer; all have been answered when it settles. */
async function pipeline(
  transaction: Transaction,
  text: string,
  paramSets: readonly (readonly SqlValue[])[],
): Promise<readonly QueryResult[]> {
  const results = await Promise.allSettled(
    paramSets.map((params) => transaction.query(text, params)),
  );
  const failed = results.find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  return results.map((result) => (result as PromiseFulfilledResult<QueryResult>).value);
}
