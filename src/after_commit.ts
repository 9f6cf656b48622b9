/** What is to be done once a transaction of Holdfast's own is committed. */
export class CommitHooks {
  readonly #tx: object;
  readonly #callbacks: (() => void)[] = [];

  /** Of the transaction that is known to its callers as `tx`, until it ends. */
  constructor(tx: unknown) {
    this.#tx = Object(tx);
    hooks.set(this.#tx, this);
  }

  /** Remembers a callback. */
  add(callback: () => void): void {
    this.#callbacks.push(callback);
  }

  /** The transaction has ended: calls back if it was committed. Does nothing the second time. */
  end(isCommitted: boolean): void {
    if (hooks.get(this.#tx) === this) hooks.delete(this.#tx);
    for (const callback of this.#callbacks.splice(0)) if (isCommitted) callback();
  }
}

/**
 * Calls back once a transaction is committed, and never if it is rolled back.
 *
 * @param tx what `broker.transaction` or `postgresTx` and its like have given
 * @returns false if the transaction is somebody else's: then nobody tells when it is committed
 */
export function afterCommit(tx: unknown, callback: () => void): boolean {
  const known = hooks.get(Object(tx));
  known?.add(callback);
  return known !== undefined;
}

const hooks = new WeakMap<object, CommitHooks>();
