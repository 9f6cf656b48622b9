import {
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
  /** The group to be set; left as it is if there is none. */
  readonly group?: (values: Extra) => string;
};

/** The writes that end or move a lease. */
export type LeaseWrites = Pick<
  LeaseStatements,
  "renew" | "remove" | "free" | "delay" | "release" | "bury"
>;

/** The roles that decide what a write does. */
export type LeaseRoles = Pick<
  TableDescription,
  "attempt" | "group" | "retryAfter" | "processedAt"
>;

/** What each write does, the same on every database; the dialect adds the guard. */
export function leaseWrites(
  roles: LeaseRoles,
  guarded: <Extra>(write: LeaseWrite<Extra>) => GuardedWrite<Extra>,
): LeaseWrites {
  const fenced = roles.attempt !== undefined;
  return {
    renew: guarded<{ readonly until: number }>({ until: ({ until }) => until }),
    remove: guarded<Now>(roles.processedAt === undefined ? "delete" : MARKED),
    free: guarded<Now>(fenced ? {} : AT_THE_NEXT_SECOND),
    delay: guarded<Now & Delay>(delayed(roles)),
    release: guarded<Now>({ ...AT_THE_NEXT_SECOND, giveBack: fenced }),
    ...(roles.group === undefined ? {} : { bury: guarded<Now & Group>(buried(roles)) }),
  };
}

interface Now {
  readonly now: number;
}
interface Delay {
  readonly delay: number;
}
interface Group {
  readonly group: string;
}

/** Where there is no due time the lease itself carries the delay, and that needs attempts. */
function delayed({ attempt, retryAfter }: LeaseRoles): LeaseWrite<Now & Delay> {
  if (retryAfter === undefined) return attempt === undefined ? AT_THE_NEXT_SECOND : LEASED_ON;
  return attempt === undefined ? DUE_AT_THE_NEXT_SECOND : DUE_LATER;
}

function buried({ attempt, retryAfter }: LeaseRoles): LeaseWrite<Now & Group> {
  return {
    ...(attempt === undefined ? AT_THE_NEXT_SECOND : {}),
    ...(retryAfter === undefined ? {} : { due: ({ now }: Now) => now }),
    group: ({ group }) => group,
  };
}

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
