import { type LockObserver, type Timer, type TimeScope, timeScope } from "../src/clock.ts";
import { askingDelivery } from "./asking_delivery.ts";
import type { BusyLoop } from "./busy_loop.ts";
import {
  type Activity,
  type AppTime,
  hostNow,
  type PendingTimer,
  unlessEnded,
} from "./test_time.ts";
import type { TimerOwner, VirtualTimers } from "./virtual_timers.ts";

/** What all scopes of one virtual clock share. */
export interface VirtualClock {
  /** The clock and its timers. */
  readonly timers: VirtualTimers;
  /** What is in flight. */
  readonly activity: Activity;
  /** Finds code that waits for the clock in a loop. */
  readonly busyLoop: BusyLoop;
  /** The deliveries whose handlers have not settled. */
  readonly inWork: Set<VirtualScope>;
  /** Where the sequences of random numbers start. */
  readonly seed: number;
  /** How often a delivery of this name has begun. */
  readonly begun: Map<string, number>;
  /** The deliveries that stand still where a test holds them, by what their apps see of this clock. */
  readonly standing: Set<{ readonly scope: TimeScope | undefined }>;
  /** False once it is disposed of: its code then sees the host's clock. */
  active: boolean;
}

/** What makes the scope of a delivery, or of an app that has a clock of its own. */
export interface VirtualScopeOptions {
  /** By how many milliseconds the host's clock is ahead of the database's. */
  readonly skew?: number;
  /** The delivery's name. */
  readonly name?: string;
  /** The scope that it is part of. */
  readonly parent?: VirtualScope;
  /** Where its code may wait for locks, if that is known. */
  readonly database?: LockObserver;
}

/** The time scope whose code sees a virtual clock: an app's, and one for each delivery. */
export class VirtualScope implements TimeScope, TimerOwner, AppTime {
  /** The clock its code sees. */
  readonly clock: VirtualClock;
  /** The delivery's name; `undefined` for the app itself. */
  readonly name: string | undefined;
  /** The app's scope. */
  readonly app: VirtualScope;
  /** Where its code may wait for locks, if that is known. */
  readonly database: LockObserver | undefined;
  readonly #skew: number;
  readonly #parent: VirtualScope | undefined;
  readonly #random: () => number;
  #awaited = 0;
  #hasEnded = false;
  #isOver = false;

  /** The scope of an app, or of one delivery within its parent. */
  constructor(clock: VirtualClock, options: VirtualScopeOptions = {}) {
    const { skew = 0, name, parent, database } = options;
    this.clock = clock;
    this.name = name;
    this.database = database;
    this.app = parent?.app ?? this;
    this.#skew = parent === undefined ? skew : parent.#skew;
    this.#parent = parent;
    // What is drawn in one delivery does not depend on what happens beside it.
    const nth = name === undefined ? 0 : countOf(clock.begun, name);
    this.#random = randomNumbers(clock.seed + hash(name ?? "") + nth);
  }

  /** What its code takes for the present, in milliseconds since 1970. */
  get now(): number {
    return this.clock.timers.now + this.#skew;
  }

  /** Whether its code is not to go on. */
  get hasEnded(): boolean {
    return this.app.#hasEnded;
  }

  /** Whether it is the scope of a delivery whose handler has ended. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** See {@link AppTime.pending}. */
  get pending(): readonly PendingTimer[] {
    return this.clock.timers.pendingOf((owner) => this.#owns(owner));
  }

  /** See {@link AppTime.run}. */
  run<T>(fn: () => T): T {
    return timeScope.run(this, fn);
  }

  /** See {@link AppTime.isInside}. */
  get isInside(): boolean {
    const scope = timeScope.getStore();
    return scope instanceof VirtualScope && scope.clock === this.clock;
  }

  /** See {@link AppTime.end}. */
  end(): void {
    this.app.#hasEnded = true;
    this.clock.timers.clear((owner) => this.#owns(owner));
    for (const delivery of this.clock.inWork) {
      if (delivery.app === this.app) this.clock.inWork.delete(delivery);
    }
    for (const place of this.clock.standing) {
      if (place.scope instanceof VirtualScope && place.scope.app === this.app) {
        this.clock.standing.delete(place);
      }
    }
    this.clock.activity.note();
  }

  #owns(owner: TimerOwner): boolean {
    return owner instanceof VirtualScope && owner.app === this.app;
  }

  /** Whether a timer that its code has created is pending, or a test holds it. */
  get ownsTimer(): boolean {
    return this.#awaited > 0;
  }

  /** Counts a timer, or a hold, also for the delivery that this one is part of. */
  count(change: 1 | -1): void {
    this.#awaited += change;
    this.#parent?.count(change);
  }

  /** See {@link TimeScope.track}. */
  track<T>(io: () => Promise<T>, text?: string, database?: LockObserver): Promise<T> {
    return unlessEnded(this, () => {
      if (!this.clock.active) return timeScope.run(undefined, io);
      const delivery = this.name === undefined ? undefined : this;
      const asked = () => askingDelivery.run(this.name, io);
      return this.clock.activity.track(asked, { text, database, delivery });
    });
  }

  /** See {@link TimeScope.delivery}. */
  delivery<T>(name: string, handle: () => Promise<T>, database?: LockObserver): Promise<T> {
    return unlessEnded(this, () => this.#deliver(handle, { name, parent: this, database }));
  }

  async #deliver<T>(handle: () => Promise<T>, options: VirtualScopeOptions): Promise<T> {
    const { inWork, activity } = this.clock;
    const scope = new VirtualScope(this.clock, options);
    inWork.add(scope);
    activity.note();
    try {
      return await timeScope.run(scope, handle);
    } finally {
      scope.#isOver = true;
      inWork.delete(scope);
      activity.noteRelease();
    }
  }

  /** See {@link TimeScope.random}. */
  random(): number {
    return this.#random();
  }

  /** See {@link TimeScope.after}; `undefined` once the clock is disposed of. */
  get after(): TimeScope["after"] {
    return this.clock.active ? this.#after : undefined;
  }

  #after(ms: number, callback: () => void): Timer {
    const timer = this.clock.timers.add({
      kind: "setTimeout",
      callback,
      // As the host's timers, whose delays are whole: rows are not given times of half a millisecond.
      delay: Math.max(0, Math.ceil(ms)),
      args: [],
      owner: this,
      isOwn: true,
      calledAs: this.#after,
    });
    return { cancel: () => void timer.close() };
  }

  /** See {@link TimeScope.databaseNow}. */
  databaseNow(): number {
    return this.clock.active ? this.clock.timers.now : hostNow();
  }
}

function countOf(counts: Map<string, number>, name: string): number {
  const count = (counts.get(name) ?? 0) + 1;
  counts.set(name, count);
  return count;
}

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let value = 0x811C9DC5;
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  return value | 0;
}

/** The same numbers in [0, 1) for the same seed (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6D2B79F5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
