import type { HeldTransaction, OpenTransaction } from "../held_transaction.ts";
import { Savepoint } from "./savepoint.ts";

/**
 * The rows that one transaction holds. It is committed when the last of them is settled. What fails
 * for one of several is undone for that one alone.
 */
export class LockedRows {
  readonly #transaction: HeldTransaction;
  readonly #alone: boolean;
  readonly #ended = Promise.withResolvers<void>();
  #left: number;
  #hasWritten = false;
  #last: Promise<unknown> = Promise.resolve();
  #work: Promise<Savepoint> | undefined;

  constructor(transaction: HeldTransaction, count: number) {
    this.#transaction = transaction;
    this.#left = count;
    this.#alone = count === 1;
    this.#ended.promise.catch(() => {});
  }

  /** Aborts when the connection is gone, and the transaction with it. */
  get lost(): AbortSignal {
    return this.#transaction.lost;
  }

  /** The transaction for a handler: what it writes can be undone by itself. */
  async openForHandler(): Promise<OpenTransaction> {
    await (this.#work ??= Savepoint.set(this.#transaction, "holdfast"));
    return this.#transaction;
  }

  /**
   * Settles a row, and resolves when that is committed.
   *
   * @param keeps whether what the handler has written is kept
   */
  async settle(
    write: (transaction: HeldTransaction) => Promise<void>,
    keeps: boolean,
  ): Promise<void> {
    const settling = this.#last.then(() => this.#settle(write, keeps));
    this.#last = settling.catch(() => {});
    try {
      await settling;
    } catch (error) {
      await this.#leave(this.#alone);
      throw error;
    }
    this.#hasWritten = true;
    await this.#leave();
    await this.#ended.promise;
  }

  /** Leaves a row as it is. It is free when the transaction has ended. */
  async leave(): Promise<void> {
    await this.#endWork(false).catch(() => {});
    await this.#leave();
  }

  async #settle(
    write: (transaction: HeldTransaction) => Promise<void>,
    keeps: boolean,
  ): Promise<void> {
    await this.#endWork(keeps);
    if (this.#alone) return await write(this.#transaction);
    const savepoint = await Savepoint.set(this.#transaction, "settle");
    try {
      await write(this.#transaction);
    } catch (error) {
      await savepoint.undo();
      throw error;
    }
    await savepoint.keep();
  }

  async #endWork(keeps: boolean): Promise<void> {
    const work = await this.#work;
    this.#work = undefined;
    await (keeps ? work?.keep() : work?.undo());
  }

  async #leave(rollsBack = false): Promise<void> {
    this.#left--;
    if (this.#left > 0 && !rollsBack) return;
    try {
      if (this.#hasWritten && !rollsBack) await this.#transaction.commit();
      else await this.#transaction.rollback();
      this.#ended.resolve();
    } catch (error) {
      this.#ended.reject(error);
    }
  }
}
