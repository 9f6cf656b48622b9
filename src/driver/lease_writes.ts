import { type GuardedWrite, type LeaseStatements, nextSecond } from "./dialect.ts";

/** What a guarded write of the lease form does: deletes the row, or sets its expiry. */
export type LeaseWrite<Extra> = "delete" | {
  /** The expiry to be set, in milliseconds since 1970; NULL if there is none. */
  readonly until?: (values: Extra) => number;
  /** Whether the attempt is given back. */
  readonly giveBack?: boolean;
};

/** The writes that end or move a lease. */
export type LeaseWrites = Pick<
  LeaseStatements,
  "renew" | "remove" | "free" | "delay" | "release"
>;

/**
 * What each write does, the same on every database; the dialect adds the guard.
 *
 * @param countsAttempts whether the table has the role `attempt`
 */
export function leaseWrites(
  countsAttempts: boolean,
  guarded: <Extra>(write: LeaseWrite<Extra>) => GuardedWrite<Extra>,
): LeaseWrites {
  return {
    renew: guarded<{ readonly until: number }>({ until: ({ until }) => until }),
    remove: guarded("delete"),
    free: guarded<Now>(countsAttempts ? {} : AT_THE_NEXT_SECOND),
    delay: guarded<Now & Delay>(countsAttempts ? AFTER_THE_DELAY : AT_THE_NEXT_SECOND),
    release: guarded<Now>({ ...AT_THE_NEXT_SECOND, giveBack: countsAttempts }),
  };
}

interface Now {
  readonly now: number;
}
interface Delay {
  readonly delay: number;
}

/** With the attempt spent the next token differs; else only a later expiry makes it differ. */
const AT_THE_NEXT_SECOND = { until: ({ now }: Now) => nextSecond(now) };

/** A millisecond past a whole second, so that a delay is never taken for a lease. */
const AFTER_THE_DELAY = {
  until: ({ now, delay }: Now & Delay) => Math.ceil((now + delay) / 1000) * 1000 + 1,
};
