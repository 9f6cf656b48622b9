import { sleep } from "./clock.ts";

/** Lets a loop sleep until there is something to do. A call while nobody sleeps is remembered. */
export class Wake {
  #call = new AbortController();

  /** Aborts at the next call; aborted if one is remembered. */
  get signal(): AbortSignal {
    return this.#call.signal;
  }

  /** Ends the sleep, or keeps the next one from beginning. */
  call(): void {
    this.#call.abort(CALLED);
  }

  /** Forgets earlier calls, because what they announced is about to be looked for. */
  forget(): void {
    if (this.#call.signal.aborted) this.#call = new AbortController();
  }

  /** Resolves when called, or after `ms` milliseconds. */
  sleep(ms: number): Promise<void> {
    return sleep(ms, this.#call.signal);
  }

  /** Resolves when called. */
  called(): Promise<void> {
    const { signal } = this.#call;
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }
}

/** A reason that is not made anew, with its stack, for each call. */
const CALLED = "called";
