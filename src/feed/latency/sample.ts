/** The times of one event on its way from its writer to a follower: milliseconds since 1970, with fractions. */
export interface LatencySample {
  /** When its write was asked for. */
  readonly started: number;
  /** When it was committed. */
  readonly committed: number;
  /** When it was in the follower's process. */
  readonly received: number;
  /** When the follower's code had it. */
  readonly consumed: number;
  /** By which way it came. */
  readonly source: "broadcast" | "poll";
}
