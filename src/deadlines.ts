import { type Duration, toMilliseconds } from "./duration.ts";
import { DeclarationError } from "./errors.ts";

/** How long each phase of a stop may take. One set for the whole app, whatever it consists of. */
export interface DeadlineOptions {
  /**
   * How long everything goes on working after the app has been asked to stop, while it already says
   * that it is not ready: for load balancers that take their time to notice. Default 0; 15 s behind a
   * Kubernetes Service whose pod has no preStop hook.
   */
  readonly preStop?: Duration;
  /** How long handlers and requests in flight may finish; default 44 s. */
  readonly drain?: Duration;
  /** How long a handler may take to settle after its signal has aborted; default 5 s. */
  readonly abortTimeout?: Duration;
  /** How long databases and components may take to close; default 5 s. */
  readonly closeTimeout?: Duration;
  /**
   * How long all of that may take together, before the process is killed by whoever runs it
   * (`terminationGracePeriodSeconds`, less the time of a preStop hook); default 60 s.
   */
  readonly grace?: Duration;
}

/** The deadlines of an app, in milliseconds. */
export interface Deadlines {
  /** How long everything works on. */
  readonly preStop: number;
  /** How long what is in flight may finish. */
  readonly drain: number;
  /** How long what was aborted may settle. */
  readonly abortTimeout: number;
  /** How long closing may take. */
  readonly closeTimeout: number;
  /** How long there is for all of it. */
  readonly grace: number;
}

/**
 * The deadlines in milliseconds, with their defaults.
 *
 * @throws {TypeError} if one is no duration
 * @throws {RangeError} if one is negative
 */
export function readDeadlines(options: DeadlineOptions): Deadlines {
  return {
    preStop: toMilliseconds(options.preStop ?? 0, "preStop"),
    drain: toMilliseconds(options.drain ?? 44_000, "drain"),
    abortTimeout: toMilliseconds(options.abortTimeout ?? 5_000, "abortTimeout"),
    closeTimeout: toMilliseconds(options.closeTimeout ?? 5_000, "closeTimeout"),
    grace: toMilliseconds(options.grace ?? 60_000, "grace"),
  };
}

/**
 * Refuses phases that together take longer than there is time: the process would be killed in the
 * middle of one.
 *
 * @throws {DeclarationError} with the sum
 */
export function checkDeadlines(app: string, deadlines: Deadlines): void {
  const { grace, ...phases } = deadlines;
  const sum = Object.values(phases).reduce((total, each) => total + each);
  if (sum <= grace) return;
  const terms = Object.entries(phases).map(([name, ms]) => `${name} ${ms / 1000} s`).join(" + ");
  throw new DeclarationError(
    `Cannot start the app "${app}": ${terms} = ${sum / 1000} s, which is more than grace, ` +
      `${grace / 1000} s; shorten drain, or give the process a longer grace period`,
  );
}
