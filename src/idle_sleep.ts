import type { NextDue } from "./driver/dialect.ts";
import type { Wake } from "./wake.ts";

/** A loop that has nothing to do, as whoever lets it sleep sees it. */
export interface IdleLoop {
  /** Ends its sleep. */
  readonly wake: Wake;
  /** In milliseconds. */
  readonly pollInterval: number;
  /** Where in the interval its polls are, in [0, 1): the same whenever the app is started. */
  readonly phase: number;
  /** Asks the database; `undefined` where the service searches by a statement of its own. */
  nextDue(): Promise<NextDue | undefined>;
}

/** Sleeps in place of a loop's poll interval. */
export interface IdleSleep {
  /** Resolves when the loop is to look for rows again. Given the same object each time. */
  sleep(loop: IdleLoop): Promise<void>;
}
