import { backoff } from "./backoff.ts";
import { inRealTime, sleep } from "./clock.ts";
import { DriverError } from "./errors.ts";

/** A deadlock leaves nothing behind: what met with one is tried again, but not for ever. */
export async function withoutConflicts<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1;; tries++) {
    try {
      return await attempt();
    } catch (error) {
      const conflict = error instanceof DriverError && error.kind === "conflict";
      if (!conflict || tries === MOST_TRIES) throw error;
    }
    const pause = backoff(tries, BETWEEN_CONFLICTS);
    await inRealTime(() => sleep(pause));
  }
}

const MOST_TRIES = 10;
/** In milliseconds. */
const BETWEEN_CONFLICTS = { first: 10, cap: 200 };
