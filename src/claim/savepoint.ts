import type { OpenTransaction } from "../held_transaction.ts";

/**
 * What a handler writes in a transaction that also holds its row stands behind a savepoint: it can be
 * undone by itself. A savepoint that is gone tells that the server has rolled the transaction back,
 * or that the handler has ended it.
 */
export class Savepoint {
  readonly #transaction: OpenTransaction;
  readonly #name: string;

  /** One that has been set already. */
  constructor(transaction: OpenTransaction, name: string) {
    this.#transaction = transaction;
    this.#name = name;
  }

  /** Sets a savepoint. */
  static async set(transaction: OpenTransaction, name: string): Promise<Savepoint> {
    const savepoint = new Savepoint(transaction, name);
    await savepoint.#run(`SAVEPOINT ${name}`);
    return savepoint;
  }

  /** Keeps what was written since; rejects if it is there no more. */
  keep(): Promise<void> {
    return this.#run(`RELEASE SAVEPOINT ${this.#name}`);
  }

  /** Undoes what was written since. */
  undo(): Promise<void> {
    return this.#run(`ROLLBACK TO SAVEPOINT ${this.#name}`);
  }

  async #run(text: string): Promise<void> {
    await this.#transaction.run({ text, params: [] }, undefined);
  }
}
