import { type Duration, toMilliseconds } from "./duration.ts";

/**
 * The milliseconds of a delay that a column is to keep.
 *
 * @param name what the delay is for, as it stands in errors
 * @param cannot what cannot be done with one that is too long, as the error begins
 * @throws {TypeError} if it is not a duration
 * @throws {RangeError} if it is negative, or longer than 36,500 days
 */
export function toDelay(delay: Duration, name: string, cannot: string): number {
  const milliseconds = toMilliseconds(delay, name);
  if (milliseconds <= LONGEST_DELAY) return milliseconds;
  throw new RangeError(`${cannot} after ${milliseconds} ms: give at most 36,500 days`);
}

/** A hundred years, in milliseconds: the years after 9999 are beyond what columns can hold. */
const LONGEST_DELAY = 36_500 * 86_400_000;
