import type { DeliveryRecord } from "../src/runtime.ts";
import { FakeTimeError } from "./fake_time_error.ts";
import type { TestTime } from "./test_time.ts";

/** On virtual time, deliveries without end at one instant would keep the clock from ever moving. */
export class StartLimit {
  readonly #time: TestTime;
  readonly #exceeded = Promise.withResolvers<never>();
  #instant = -1;
  #starts = 0;

  /** Of the apps on this clock; real time has no limit. */
  constructor(time: TestTime) {
    this.#time = time;
    this.#exceeded.promise.catch(() => {});
  }

  /** Rejects, with a `FakeTimeError`, when too many have started. */
  get exceeded(): Promise<never> {
    return this.#exceeded.promise;
  }

  /** A delivery has started. */
  count(delivery: DeliveryRecord): void {
    const { elapsed, isVirtual } = this.#time;
    if (!isVirtual) return;
    this.#starts = elapsed === this.#instant ? this.#starts + 1 : 1;
    this.#instant = elapsed;
    if (this.#starts === MOST_STARTS) this.#exceeded.reject(endless(delivery));
  }
}

function endless({ queue, id, attempt }: DeliveryRecord): FakeTimeError {
  const nth = attempt === undefined ? "" : `, attempt ${attempt}`;
  return new FakeTimeError(
    "endless",
    `Cannot let the app come to rest: ${MOST_STARTS} deliveries started at one instant, the ` +
      `last one message ${id} of queue "${queue}"${nth}; retry after a delay, give its ` +
      `subscription maxAttempts, or publish less`,
  );
}

const MOST_STARTS = 10_000;
