import { hostClearTimeout, hostSetTimeout } from "./test_time.ts";

/**
 * Lets statements run one after the other, in the order in which they were sent, so that runs of one
 * test do not differ by which of two was faster. One that takes long, as it does when it waits for a
 * lock, does not keep the next from being sent.
 */
export class StatementLine {
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** How many have not been sent yet. */
  get length(): number {
    return this.#waiting.length;
  }

  /** Resolves when it is the caller's turn, to end with `leave`. */
  enter(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#running === 0) this.#next();
      else this.#timer ??= hostSetTimeout(() => this.#next(), LONGEST_TURN);
    });
  }

  /** The caller's statement has been answered. */
  leave(): void {
    this.#running--;
    if (this.#running === 0) this.#next();
  }

  #next(): void {
    hostClearTimeout(this.#timer);
    this.#timer = undefined;
    const go = this.#waiting.shift();
    if (go === undefined) return;
    this.#running++;
    go();
    if (this.#waiting.length > 0) this.#timer = hostSetTimeout(() => this.#next(), LONGEST_TURN);
  }
}

/** In milliseconds of real time. */
const LONGEST_TURN = 200;
