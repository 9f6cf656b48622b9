/**
 * Timers for drivers. A driver's I/O runs outside any virtual time, so these pass in real time even
 * where the app around them lives in a test.
 */

/** Resolves after a random time within these bounds, in milliseconds. */
export function pause(least: number, most: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, least + Math.random() * (most - least)));
}

/** Milliseconds on a clock that never steps back. */
export function monotonic(): number {
  return performance.now();
}
