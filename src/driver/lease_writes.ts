import {
  type Failure,
  type GuardedWrite,
  type LeaseStatements,
  nextSecond,
  type TableDescription,
} from "./dialect.ts";

/** What a guarded write of the lease form does: deletes the row, or sets some of its columns. */
export type LeaseWrite<Extra> = "delete" | {
  /** The expiry to be set, in milliseconds since 1970; NULL if there is none. */
  readonly until?: (values: Extra) => number;
  /** Whether the attempt is given back. */
  readonly giveBack?: boolean;
  /** The due time to be set, in milliseconds since 1970; left as it is if there is none. */
  readonly due?: (values: Extra) => number;
  /** The time of being done, in milliseconds since 1970; left as it is if there is none. */
  readonly processedAt?: (values: Extra) => number;
  /** Why the message was not handled; what was there before is left where there is no reason. */
  readonly error?: (values: Extra) => string | undefined;
};

/** The writes that end or move a lease. */
export type LeaseWrites = Pick<
  LeaseStatements,
  "renew" | "remove" | "free" | "delay" | "release"
>;

/** The roles that decide what a write does. */
export type LeaseRoles = Pick<
  TableDescription,
  "attempt" | "retryAfter" | "processedAt" | "lastError"
>;

/** What each write does, the same on every database; the dialect adds the guard. */
export function leaseWrites(
  roles: LeaseRoles,
  guarded: <Extra>(write: LeaseWrite<Extra>) => GuardedWrite<Extra>,
): LeaseWrites {
  const fenced = roles.attempt !== undefined;
  const failure = roles.lastError === undefined ? {} : FAILURE;
  return {
    renew: guarded<{ readonly until: number }>({ until: ({ until }) => until }),
    remove: guarded<Now & Failure>(
      roles.processedAt === undefined ? "delete" : { ...MARKED, ...failure },
    ),
    free: guarded<Now & Failure>({ ...fenced ? {} : AT_THE_NEXT_SECOND, ...failure }),
    delay: guarded<Now & Delay & Failure>({ ...delayed(roles), ...failure }),
    release: guarded<Now>({ ...AT_THE_NEXT_SECOND, giveBack: fenced }),
  };
}

interface Now {
  readonly now: number;
}
interface Delay {
  readonly delay: number;
}

/** Where there is no due time the lease itself carries the delay, and that needs attempts. */
function delayed(
  { attempt, retryAfter }: LeaseRoles,
): Exclude<LeaseWrite<Now & Delay>, "delete"> {
  if (retryAfter === undefined) return attempt === undefined ? AT_THE_NEXT_SECOND : LEASED_ON;
  return attempt === undefined ? DUE_AT_THE_NEXT_SECOND : DUE_LATER;
}

const FAILURE = { error: ({ error }: Failure) => error };

/** With the attempt spent the next token differs; else only a later expiry makes it differ. */
const AT_THE_NEXT_SECOND = { until: ({ now }: Now) => nextSecond(now) };

/** A row that is done is not claimed again, so its expiry can go. */
const MARKED = { processedAt: ({ now }: Now) => now };

const DUE_LATER = { due: ({ now, delay }: Now & Delay) => now + delay };

/** Not before the next second, so that the next claim's expiry is later than that of this one. */
const DUE_AT_THE_NEXT_SECOND = {
  due: ({ now, delay }: Now & Delay) => Math.max(now + delay, nextSecond(now)),
};

/** A millisecond past a whole second, so that a delay is never taken for a lease. */
const LEASED_ON = {
  until: ({ now, delay }: Now & Delay) => Math.ceil((now + delay) / 1000) * 1000 + 1,
};
