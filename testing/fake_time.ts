import { timeScope } from "../src/clock.ts";
import { type Duration, toMilliseconds } from "../src/duration.ts";
import { ClosedError, HoldfastError } from "../src/errors.ts";
import {
  Activity,
  futureTime,
  hostNow,
  hostSleep,
  macrotask,
  type PendingTimer,
  type TestTime,
} from "./test_time.ts";
import { installVirtualGlobals, removeVirtualGlobals } from "./virtual_globals.ts";
import { randomNumbers, type VirtualClock, VirtualScope } from "./virtual_scope.ts";
import { VirtualTimers } from "./virtual_timers.ts";

export type { Duration, DurationLike } from "../src/duration.ts";
export { HoldfastError } from "../src/errors.ts";
export type { PendingTimer, TestTime, TimerKind } from "./test_time.ts";

/** How a {@link FakeTime} starts and when it gives up. */
export interface FakeTimeOptions {
  /** Where it starts; the real time, cut to a whole second, unless given. */
  readonly now?: number | Date;
  /**
   * How many timers may fire at one instant, or in one `runUntilIdle`; a hundred times as many may
   * in one `advance`. 10,000 unless given.
   */
  readonly limit?: number;
  /** How long a handler may wait, in real time, for what no timer drives. 5 s unless given. */
  readonly patience?: Duration;
  /** Where the sequence of random numbers starts. 1 unless given. */
  readonly seed?: number;
}

/** The virtual clock runs away, or cannot move on. */
export class FakeTimeError extends HoldfastError {
  /** Always `"fake_time"`. */
  override readonly code = "fake_time";
  /** Whether it stands still for a delivery, or would never come to rest. */
  readonly reason: "stuck" | "endless";

  /** Says why. */
  constructor(reason: "stuck" | "endless", message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * Virtual time for the code that runs inside it; code outside keeps real time.
 *
 * The clock never moves by itself, only in `advance`, `advanceTo` and `runUntilIdle`, and then only
 * from timer to timer, each time waiting until everything is quiet. Calls of these queue: a second
 * one starts when, and at the time at which, the first has ended.
 */
export class FakeTime implements TestTime {
  readonly #clock: VirtualClock;
  readonly #scope: VirtualScope;
  readonly #limit: number;
  readonly #patience: number;
  #moving: Promise<void> = Promise.resolve();

  /**
   * Installs the virtual globals, unless another `FakeTime` already has.
   *
   * @throws {DeclarationError} if another fake clock has replaced the globals
   */
  constructor(options: FakeTimeOptions = {}) {
    const { now = Math.floor(hostNow() / 1000) * 1000, limit = 10_000, seed = 1 } = options;
    if (!Number.isFinite(Number(now))) {
      throw new RangeError(`Cannot start a FakeTime at ${String(now)}: give a valid time`);
    }
    if (!(limit >= 1)) throw new RangeError(`Cannot use ${limit} as limit: give 1 or more`);
    this.#limit = limit;
    this.#patience = toMilliseconds(options.patience ?? 5_000, "patience");
    this.#clock = clockFrom(Number(now), seed);
    this.#scope = new VirtualScope(this.#clock);
    installVirtualGlobals();
  }

  /** The virtual present, in milliseconds since 1970. */
  get now(): number {
    return this.#clock.timers.now;
  }

  /** Virtual milliseconds since the start. */
  get elapsed(): number {
    return this.#clock.timers.elapsed;
  }

  /** The timers that have not fired yet, in the order in which they will. */
  get pending(): readonly PendingTimer[] {
    return this.#clock.timers.pending;
  }

  /** Runs code inside: its timers and its `Date` are virtual, also after the call returns. */
  run<T>(fn: () => T): T {
    return timeScope.run(this.#scope, fn);
  }

  /** Runs I/O outside, in real time; the clock does not move until it settles. */
  track<T>(io: () => Promise<T>): Promise<T> {
    return this.#clock.activity.track(io);
  }

  /** The clock does not move until this is disposed of. */
  hold(): Disposable {
    return this.#clock.activity.hold();
  }

  /**
   * Resolves when nothing is in flight or held, two macrotasks in a row were calm, and every
   * delivery in work waits for a virtual timer of its own.
   *
   * @throws {FakeTimeError} if a delivery waits for something else longer than `patience`
   */
  async quiet(): Promise<void> {
    const { activity } = this.#clock;
    await activity.calm();
    let changes = activity.changes;
    let since = hostNow();
    for (let turn = 0; this.#waiting.length > 0; turn++) {
      if (hostNow() - since > this.#patience) throw stuck(this.#waiting, this.#patience);
      await (turn < EAGER_TURNS ? macrotask() : hostSleep(1));
      await activity.calm();
      if (activity.changes === changes) continue;
      changes = activity.changes;
      since = hostNow();
      turn = 0;
    }
  }

  /**
   * Moves the clock on, firing one timer at a time, those due exactly at the end included.
   *
   * @throws what a timer's callback throws; the clock then stays at that timer's instant
   * @throws {FakeTimeError} if too many timers fire, or a delivery waits for what no timer drives
   */
  advance(duration: Duration): Promise<void> {
    return this.#inTurn(() => this.#moveTo(this.now + toMilliseconds(duration, "advance")));
  }

  /**
   * As `advance`, to an instant.
   *
   * @throws {RangeError} if it lies in the past
   */
  advanceTo(time: number | Date): Promise<void> {
    return this.#inTurn(() => this.#moveTo(futureTime(time, this.now)));
  }

  /** As `advance`, until no timer is pending. */
  runUntilIdle(): Promise<void> {
    return this.#inTurn(() => this.#fire(Infinity, this.#limit));
  }

  /** Lets the clock move though deliveries in work wait for what no timer drives. */
  giveUp(): void {
    this.#clock.inWork.clear();
  }

  /** Drops all timers; restores the globals when the last `FakeTime` goes. */
  [Symbol.dispose](): void {
    if (!this.#clock.active) return;
    this.#clock.active = false;
    this.#clock.timers.clear();
    removeVirtualGlobals();
  }

  get #waiting(): VirtualScope[] {
    return [...this.#clock.inWork].filter((delivery) => !delivery.ownsTimer);
  }

  #inTurn(move: () => Promise<void>): Promise<void> {
    const turn = this.#moving.then(() => {
      if (this.#clock.active) return move();
      throw new ClosedError("Cannot move a FakeTime that is disposed of: start another one");
    });
    this.#moving = turn.catch(() => {});
    return turn;
  }

  async #moveTo(end: number): Promise<void> {
    await this.#fire(end, 100 * this.#limit);
    this.#clock.timers.moveTo(end);
  }

  async #fire(end: number, most: number): Promise<void> {
    const { timers } = this.#clock;
    let fired = 0;
    let atInstant = 0;
    await this.quiet();
    for (let due = timers.nextDue; due !== undefined && due <= end; due = timers.nextDue) {
      atInstant = due === this.now ? atInstant + 1 : 1;
      if (atInstant > this.#limit) throw runaway(`${this.#limit} timers at one instant`, timers);
      if (++fired > most) throw runaway(`${most} timers in one call`, timers);
      timers.fireNext();
      await this.quiet();
    }
  }
}

function clockFrom(now: number, seed: number): VirtualClock {
  const activity = new Activity();
  const timers = new VirtualTimers(now, () => activity.note());
  return { activity, timers, inWork: new Set(), random: randomNumbers(seed), active: true };
}

function stuck(waiting: readonly VirtualScope[], patience: number): FakeTimeError {
  const names = waiting.map(({ name }) => name).join(", ");
  return new FakeTimeError(
    "stuck",
    `Cannot move the virtual clock: the delivery of ${names} has waited ${patience} ms of real ` +
      `time for ` +
      `something that no virtual timer drives; use the global setTimeout (named imports of ` +
      `node:timers stay real), run slow I/O in time.track(), settle what it waits for from the ` +
      `test before time moves, or give a longer patience`,
  );
}

function runaway(what: string, timers: VirtualTimers): FakeTimeError {
  return new FakeTimeError(
    "endless",
    `Cannot move the virtual clock beyond ${
      new Date(timers.now).toISOString()
    }: it fired ${what} ` +
      `and another is due; end the loop that creates them, poll less often (pollInterval), or give a higher limit; the next was ` +
      `created here:\n${timers.nextStack}`,
  );
}

/** Macrotasks for what settles at once, before waiting costs milliseconds. */
const EAGER_TURNS = 50;
