/**
 * The value that so many percent of all values do not exceed, by the nearest-rank method: always one of
 * the values.
 *
 * @param sorted in ascending order
 * @param percent above 0, and 100 at the most
 * @returns `undefined` if there are no values
 * @throws {RangeError} if there is no such percentile
 */
export function percentile(sorted: readonly number[], percent: number): number | undefined {
  if (!(percent > 0 && percent <= 100)) {
    throw new RangeError(`Cannot tell percentile ${percent}: give a number above 0, up to 100`);
  }
  return sorted[Math.ceil(sorted.length * percent / 100) - 1];
}
