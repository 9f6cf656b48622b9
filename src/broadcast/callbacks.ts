import { asError } from "../thrown.ts";
import { type Unsubscribe, unsubscribeBy } from "./unsubscribe.ts";

/** Is called with what has happened. */
export type Callback<T> = (value: T) => void | Promise<void>;

/** Those who are called for the same reason, none of whom can hurt another. */
export class Callbacks<T> {
  readonly #callbacks = new Set<{ readonly callback: Callback<T> }>();
  readonly #failed: (error: Error) => void;

  /** @param failed is told of what a callback throws, or rejects with */
  constructor(failed: (error: Error) => void) {
    this.#failed = failed;
  }

  /** Whether there are any. */
  get isEmpty(): boolean {
    return this.#callbacks.size === 0;
  }

  /** Adds one; the same function added twice is called twice. */
  add(callback: Callback<T>): Unsubscribe {
    const entry = { callback };
    this.#callbacks.add(entry);
    return unsubscribeBy(() => this.#callbacks.delete(entry));
  }

  /** Calls all of them, and waits for none. */
  call(value: T): void {
    for (const { callback } of [...this.#callbacks]) this.#call(callback, value);
  }

  #call(callback: Callback<T>, value: T): void {
    try {
      Promise.resolve(callback(value)).catch((thrown) => this.#fail(thrown));
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  #fail(thrown: unknown): void {
    this.#failed(asError(thrown, "A callback"));
  }
}
