import { percentile } from "../feed/latency/percentile.ts";

/** How long the last messages were under way. */
export class RecentLatencies {
  readonly #values: number[] = [];
  readonly #most: number;
  #next = 0;

  /** @param most how many are kept */
  constructor(most: number) {
    this.#most = most;
  }

  /** Keeps one, in milliseconds, and forgets the oldest if there are too many. */
  add(ms: number): void {
    this.#values[this.#next] = ms;
    this.#next = (this.#next + 1) % this.#most;
  }

  /**
   * What so many percent of them do not exceed, in milliseconds; `undefined` if there are none.
   *
   * @throws {RangeError} if there is no such percentile
   */
  percentile(percent: number): number | undefined {
    return percentile(this.#values.toSorted((a, b) => a - b), percent);
  }
}
