import { random } from "./clock.ts";

/** How delays grow: doubled with each attempt up to a cap, then drawn from zero to that length. */
export interface BackoffCurve {
  /** The longest first delay, in milliseconds. */
  readonly first: number;
  /** The longest delay at all, in milliseconds. */
  readonly cap: number;
}

/**
 * The delay before the attempt after this one, in milliseconds: exponential, with full jitter
 * (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015), so that what failed
 * together does not come back together.
 *
 * @param attempt the attempt that failed, 1 for the first
 */
export function backoff(attempt: number, { first, cap }: BackoffCurve): number {
  return random() * Math.min(cap, first * 2 ** Math.min(attempt - 1, 52));
}

/** After a handler failed. */
export const AFTER_FAILURE: BackoffCurve = { first: 1_000, cap: 3_600_000 };

/** After the database could not be reached. */
export const AFTER_DISCONNECT: BackoffCurve = { first: 200, cap: 30_000 };
