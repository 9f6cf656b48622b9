import { type TimeScope, timeScope } from "../src/clock.ts";
import { type Duration, toMilliseconds } from "../src/duration.ts";
import {
  Activity,
  futureTime,
  hostNow,
  hostSleep,
  type PendingTimer,
  type TestTime,
} from "./test_time.ts";

export type { Duration, DurationLike } from "../src/duration.ts";
export type { PendingTimer, TestTime, TimerKind } from "./test_time.ts";

/** The real clock in the shape of `FakeTime`: replaces nothing, and time passes by itself. */
export class LiveTime implements TestTime {
  /** Always empty: real timers are not counted. */
  readonly pending: readonly PendingTimer[] = [];
  readonly #start = hostNow();
  readonly #activity = new Activity();
  readonly #scope = new LiveScope(this.#activity);

  /** The present, in milliseconds since 1970. */
  get now(): number {
    return hostNow();
  }

  /** Milliseconds since the start. */
  get elapsed(): number {
    return hostNow() - this.#start;
  }

  /** Runs code whose I/O is counted as in flight. */
  run<T>(fn: () => T): T {
    return timeScope.run(this.#scope, fn);
  }

  /** Runs I/O outside; in flight until it settles. */
  track<T>(io: () => Promise<T>): Promise<T> {
    return this.#activity.track(io);
  }

  /** Nothing counts as quiet until this is disposed of. */
  hold(): Disposable {
    return this.#activity.hold();
  }

  /** Resolves when nothing is in flight or held, and two macrotasks in a row were calm. */
  quiet(): Promise<void> {
    return this.#activity.calm();
  }

  /** Sleeps in real time, then waits until everything is quiet. */
  async advance(duration: Duration): Promise<void> {
    await hostSleep(toMilliseconds(duration, "advance"));
    await this.quiet();
  }

  /**
   * As `advance`, up to an instant.
   *
   * @throws {RangeError} if it lies in the past
   */
  async advanceTo(time: number | Date): Promise<void> {
    const now = hostNow();
    await this.advance(futureTime(time, now) - now);
  }

  /** Deliveries are never waited for. */
  giveUp(): void {}

  /** Nothing to put back. */
  [Symbol.dispose](): void {}
}

class LiveScope implements TimeScope {
  readonly #activity: Activity;

  constructor(activity: Activity) {
    this.#activity = activity;
  }

  track<T>(io: () => Promise<T>): Promise<T> {
    return this.#activity.track(io);
  }

  async delivery<T>(_name: string, handle: () => Promise<T>): Promise<T> {
    this.#activity.note();
    try {
      return await handle();
    } finally {
      this.#activity.note();
    }
  }

  random(): number {
    return Math.random();
  }
}
