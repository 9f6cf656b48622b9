import { FakeTimeError } from "./fake_time_error.ts";
import { hostMonotonic, macrotask } from "./test_time.ts";

/**
 * Finds code that asks for the time in a loop until it has passed: a virtual clock stands still while
 * code runs, so that such a loop would never end.
 */
export class BusyLoop {
  readonly #patience: number;
  /** How often the time was asked for, in this turn of the event loop once it is watched. */
  #asked = 0;
  #since: number | undefined;
  #found: FakeTimeError | undefined;

  /** @param patience how long one turn of the event loop may take, in milliseconds of real time */
  constructor(patience: number) {
    this.#patience = patience;
  }

  /**
   * The time is asked for. Cheap, but for one call in a thousand.
   *
   * @param delivery the delivery whose handler asks; `undefined` for all other code of an app
   * @param calledAs the function that the code has called
   * @throws {FakeTimeError} if it is asked for without end
   */
  count(delivery: string | undefined, calledAs: (...args: never[]) => unknown): void {
    if (++this.#asked % CHECK_EVERY === 0) this.#check(delivery, calledAs);
  }

  /** What was thrown and the test has not been told yet: a handler may have caught it. Told once. */
  take(): FakeTimeError | undefined {
    const found = this.#found;
    this.#found = undefined;
    return found;
  }

  #check(delivery: string | undefined, calledAs: (...args: never[]) => unknown): void {
    if (this.#since === undefined) this.#watch();
    const took = hostMonotonic() - this.#since!;
    if (this.#asked <= MOST_ASKED || took <= this.#patience) return;
    this.#found ??= busyError(delivery, this.#asked, took, calledAs);
    throw this.#found;
  }

  /** Until the event loop turns, which it cannot while code runs. */
  #watch(): void {
    this.#since = hostMonotonic();
    void macrotask().then(() => {
      this.#asked = 0;
      this.#since = undefined;
    });
  }
}

/** Whether an error is one of {@link BusyLoop}, of which nothing is left that could be a leak. */
export function isBusyLoop(error: unknown): boolean {
  return error instanceof FakeTimeError && thrown.has(error);
}

function busyError(
  delivery: string | undefined,
  asked: number,
  took: number,
  calledAs: (...args: never[]) => unknown,
): FakeTimeError {
  const whose = delivery === undefined ? "code of the app" : `the handler of ${delivery}`;
  const trace: { stack?: string } = {};
  Error.captureStackTrace(trace, calledAs);
  const [, place = "at an unknown place"] = (trace.stack ?? "").split("\n");
  const error = new FakeTimeError(
    "stuck",
    `Cannot move the virtual clock: ${whose} has asked for the time ${asked} times in ` +
      `${
        Math.round(took)
      } ms of real time, in one go; virtual time stands still while code runs, so ` +
      `that a loop never sees it pass: await a setTimeout in place of the loop, or give a longer ` +
      `patience; the last time was ${place.trim()}`,
  );
  thrown.add(error);
  return error;
}

const thrown = new WeakSet<FakeTimeError>();
const CHECK_EVERY = 1_000;
/** In one turn of the event loop, however long that takes. */
const MOST_ASKED = 10_000;
