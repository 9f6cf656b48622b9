import { timeScope } from "../src/clock.ts";
import { type Duration, toMilliseconds } from "../src/duration.ts";
import { ClosedError } from "../src/errors.ts";
import { BusyLoop, isBusyLoop } from "./busy_loop.ts";
import { FakeTimeError } from "./fake_time_error.ts";
import { IdlePolls, idlePolls } from "./idle_polls.ts";
import { Standstill } from "./standstill.ts";
import { StatementLine } from "./statement_line.ts";
import {
  Activity,
  type AppTime,
  type AppTimeOptions,
  futureTime,
  hostNow,
  type PendingTimer,
  type TestTime,
} from "./test_time.ts";
import { installVirtualGlobals, removeVirtualGlobals } from "./virtual_globals.ts";
import { type VirtualClock, VirtualScope } from "./virtual_scope.ts";
import { VirtualTimers } from "./virtual_timers.ts";

export type { Duration, DurationLike } from "../src/duration.ts";
export { HoldfastError } from "../src/errors.ts";
export { FakeTimeError } from "./fake_time_error.ts";
export type { AppTime, AppTimeOptions, PendingTimer, TestTime, TimerKind } from "./test_time.ts";

/** How a {@link FakeTime} starts and when it gives up. */
export interface FakeTimeOptions {
  /** Where it starts; the real time, cut to a whole second, unless given. */
  readonly now?: number | Date;
  /**
   * How many timers may fire at one instant, or in one `runUntilIdle`; a hundred times as many may
   * in one `advance`. 10,000 unless given.
   */
  readonly limit?: number;
  /**
   * How long, in real time, a handler may wait for what no timer drives, and a statement may take
   * that waits for no handler's lock, and code may ask for the time again and again without a turn
   * of the event loop. 5 s unless given. Hooks and `track` may take longer.
   */
  readonly patience?: Duration;
  /** Where the sequence of random numbers starts. 1 unless given. */
  readonly seed?: number;
}

/**
 * Virtual time for the code that runs inside it; code outside keeps real time.
 *
 * The clock never moves by itself, only in `advance`, `advanceTo` and `runUntilIdle`, and then only
 * from timer to timer, each time waiting until everything is quiet. Calls of these queue: a second
 * one starts when, and at the time at which, the first has ended.
 */
export class FakeTime implements TestTime {
  /** True: it stands still but for what the test says. */
  readonly isVirtual = true;
  readonly #clock: VirtualClock;
  readonly #idlePolls: IdlePolls;
  readonly #scope: VirtualScope;
  readonly #limit: number;
  readonly #standstill: Standstill;
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
    const patience = toMilliseconds(options.patience ?? 5_000, "patience");
    this.#clock = clockFrom(Number(now), seed, patience);
    this.#standstill = new Standstill(this.#clock, patience);
    this.#scope = new VirtualScope(this.#clock);
    this.#idlePolls = new IdlePolls(() => this.now);
    idlePolls.set(this, this.#idlePolls);
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
    return this.#scope.run(fn);
  }

  /** What one more app sees: timers of its own, and a host's clock that may be skewed. */
  forApp(options: AppTimeOptions = {}): AppTime {
    return new VirtualScope(this.#clock, options);
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
   * delivery in work waits for a virtual timer of its own. A statement does not count as in flight
   * while it waits for a lock that a delivery with such a timer may hold.
   *
   * @throws {FakeTimeError} if a delivery waits for something else longer than `patience`, a statement
   * takes longer, or code has waited in a loop for the clock to move
   */
  quiet(): Promise<void> {
    return this.#standstill.end();
  }

  /**
   * Moves the clock on, firing one timer at a time, those due exactly at the end included.
   *
   * @throws what a timer's callback throws; the clock then stays at that timer's instant
   * @throws {FakeTimeError} if too many timers fire, or a delivery waits for what no timer drives
   */
  advance(duration: Duration): Promise<void> {
    this.disturb();
    return this.#inTurn(() => this.#moveTo(this.now + toMilliseconds(duration, "advance")));
  }

  /**
   * As `advance`, to an instant.
   *
   * @throws {RangeError} if it lies in the past
   */
  advanceTo(time: number | Date): Promise<void> {
    this.disturb();
    return this.#inTurn(() => this.#moveTo(futureTime(time, this.now)));
  }

  /** As `advance`, until no timer is pending. */
  runUntilIdle(): Promise<void> {
    this.disturb();
    return this.#inTurn(() => this.#fire(Infinity, this.#limit));
  }

  /**
   * Moves to the next timer, and fires it and all that are due then. Where there is none, it moves to
   * `latest`, or else a millisecond on.
   */
  step(latest: number = Infinity): Promise<void> {
    return this.#inTurn(() => {
      const then = latest === Infinity ? this.now + 1 : latest;
      return this.#moveTo(Math.min(this.#clock.timers.nextDue ?? then, latest));
    });
  }

  /** A delivery stands still until this settles: the clock may move meanwhile. */
  async stand(until: Promise<void>): Promise<void> {
    const scope = timeScope.getStore();
    // A handler that waits for its own settle is held with it.
    const handler = scope instanceof VirtualScope ? scope : undefined;
    const place = { scope };
    this.#clock.standing.add(place);
    handler?.count(1);
    await until;
    handler?.count(-1);
    this.#clock.standing.delete(place);
    this.#clock.activity.noteRelease();
  }

  /** Idle loops look at their next poll whether the test has written rows. */
  disturb(): void {
    this.#idlePolls.disturb();
  }

  /** Lets the clock move though deliveries in work wait for what no timer drives, or statements run. */
  giveUp(): void {
    this.#standstill.giveUp();
  }

  /** Drops all timers; restores the globals when the last `FakeTime` goes. */
  [Symbol.dispose](): void {
    if (!this.#clock.active) return;
    this.#clock.active = false;
    this.#clock.timers.clear();
    removeVirtualGlobals();
  }

  #inTurn(move: () => Promise<void>): Promise<void> {
    const turn = this.#moving.then(() => {
      if (this.#clock.active) return move();
      throw new ClosedError("Cannot move a FakeTime that is disposed of: start another one");
    });
    this.#moving = turn.catch((error) => {
      // A timer's callback that has thrown it has told the test.
      if (isBusyLoop(error)) this.#clock.busyLoop.take();
    });
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
      const isOwn = timers.isNextOwn;
      timers.fireNext();
      if (!isOwn) this.disturb();
      await this.quiet();
    }
  }
}

function clockFrom(now: number, seed: number, patience: number): VirtualClock {
  const activity = new Activity(new StatementLine());
  const timers = new VirtualTimers(now, () => activity.note());
  const busyLoop = new BusyLoop(patience);
  const standing: VirtualClock["standing"] = new Set();
  const counts = { seed, begun: new Map() };
  return { activity, busyLoop, timers, inWork: new Set(), standing, ...counts, active: true };
}

function runaway(what: string, timers: VirtualTimers): FakeTimeError {
  const { now, nextDelivery, nextStack } = timers;
  const by = nextDelivery === undefined ? "" : ` by the handler of ${nextDelivery}`;
  return new FakeTimeError(
    "endless",
    `Cannot move the virtual clock beyond ${new Date(now).toISOString()}: it fired ${what} and ` +
      `another is due; end the loop that creates them, poll less often (pollInterval), or give a ` +
      `higher limit; the next was created${by} here:\n${nextStack}`,
  );
}
