/**
 * Timers for drivers. A driver's I/O runs outside any virtual time, so these pass in real time even
 * where the app around them lives in a test.
 */

/** Taken on load, so that a fake clock which the test puts in their place later is not seen. */
const { clearInterval, clearTimeout, performance, setImmediate, setInterval, setTimeout } =
  globalThis;

/** Resolves after a random time within these bounds, in milliseconds. */
export function pause(least: number, most: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, least + Math.random() * (most - least)));
}

/** A text that no other call anywhere gives: a UUID. */
export function uniqueText(): string {
  return crypto.randomUUID();
}

/** Milliseconds on a clock that never steps back. */
export function monotonic(): number {
  return performance.now();
}

/** Settles as `work` does, or rejects with what `late` makes when that takes longer than `ms`. */
export function deadline<T>(ms: number, work: Promise<T>, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Calls back again and again, `ms` milliseconds apart, until it is cancelled. */
export function every(ms: number, tick: () => void): { cancel(): void } {
  const timer = setInterval(tick, ms);
  return { cancel: () => clearInterval(timer) };
}

/**
 * Resolves at once or, when that has been so for 5 ms, after everything else that is due: timers,
 * signals, other connections. A driver whose calls are synchronous would starve them all.
 */
export function giveWay(): Promise<void> {
  const now = monotonic();
  if (now - lastGivenWay < LONGEST_TURN) return Promise.resolve();
  lastGivenWay = now;
  return new Promise((resolve) => setImmediate(resolve));
}

const LONGEST_TURN = 5;
let lastGivenWay = -Infinity;
