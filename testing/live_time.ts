import { after, type Timer, type TimeScope, timeScope } from "../src/clock.ts";
import { type Duration, toMilliseconds } from "../src/duration.ts";
import {
  Activity,
  type AppTime,
  futureTime,
  hostNow,
  hostSleep,
  type PendingTimer,
  type TestTime,
  unlessEnded,
} from "./test_time.ts";

export type { Duration, DurationLike } from "../src/duration.ts";
export type { AppTime, AppTimeOptions, PendingTimer, TestTime, TimerKind } from "./test_time.ts";

/** The real clock in the shape of `FakeTime`: replaces nothing, and time passes by itself. */
export class LiveTime implements TestTime {
  /** False: it runs by itself. */
  readonly isVirtual = false;
  /** Always empty: real timers are not counted. */
  readonly pending: readonly PendingTimer[] = [];
  readonly #start = hostNow();
  readonly #activity = new Activity();

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
    return this.forApp().run(fn);
  }

  /** Real time too; there is no skew. */
  forApp(): AppTime {
    return new LiveScope(this.#activity);
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
  async quiet(): Promise<void> {
    await this.#activity.calm();
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

  /** Waits a moment. */
  async step(latest: number = Infinity): Promise<void> {
    await this.advance(Math.max(0, Math.min(STEP, latest - this.now)));
  }

  /** Real time goes on anyway. */
  async stand(until: Promise<void>): Promise<void> {
    await until;
  }

  /** Polls come by themselves. */
  disturb(): void {}

  /** Deliveries are never waited for. */
  giveUp(): void {}

  /** Nothing to put back. */
  [Symbol.dispose](): void {}
}

class LiveScope implements TimeScope, AppTime {
  readonly pending: readonly PendingTimer[] = [];
  readonly #activity: Activity;
  readonly #timers = new Set<Timer>();
  #hasEnded = false;

  constructor(activity: Activity) {
    this.#activity = activity;
  }

  run<T>(fn: () => T): T {
    return timeScope.run(this, fn);
  }

  get isInside(): boolean {
    const scope = timeScope.getStore();
    return scope instanceof LiveScope && scope.#activity === this.#activity;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  end(): void {
    this.#hasEnded = true;
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }

  track<T>(io: () => Promise<T>): Promise<T> {
    return unlessEnded(this, () => this.#activity.track(io));
  }

  delivery<T>(_name: string, handle: () => Promise<T>): Promise<T> {
    return unlessEnded(this, async () => {
      this.#activity.note();
      try {
        return await handle();
      } finally {
        this.#activity.note();
      }
    });
  }

  /** Holdfast's own timers end with the app; those of a service are the host's. */
  after(ms: number, callback: () => void): Timer {
    if (this.#hasEnded) return { cancel: () => {} };
    const fire = (): void => {
      this.#timers.delete(timer);
      timeScope.run(this, callback);
    };
    const timer = timeScope.run(undefined, () => after(ms, fire));
    this.#timers.add(timer);
    const cancel = (): void => {
      this.#timers.delete(timer);
      timer.cancel();
    };
    return { cancel };
  }

  random(): number {
    return Math.random();
  }

  databaseNow(): number {
    return hostNow();
  }
}

/** In milliseconds. */
const STEP = 1;
