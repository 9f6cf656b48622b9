import { type TimeScope, timeScope } from "../src/clock.ts";
import type { Activity } from "./test_time.ts";
import type { TimerOwner, VirtualTimers } from "./virtual_timers.ts";

/** What all scopes of one virtual clock share. */
export interface VirtualClock {
  /** The clock and its timers. */
  readonly timers: VirtualTimers;
  /** What is in flight. */
  readonly activity: Activity;
  /** The deliveries whose handlers have not settled. */
  readonly inWork: Set<VirtualScope>;
  /** A number in [0, 1). */
  readonly random: () => number;
  /** False once it is disposed of: its code then sees the host's clock. */
  active: boolean;
}

/** The time scope whose code sees a virtual clock: the app's, and one for each delivery. */
export class VirtualScope implements TimeScope, TimerOwner {
  /** The clock its code sees. */
  readonly clock: VirtualClock;
  /** The delivery's name; `undefined` for the app itself. */
  readonly name: string | undefined;
  readonly #parent: VirtualScope | undefined;
  #pendingTimers = 0;

  /** The scope of the app, or of one delivery within its parent. */
  constructor(clock: VirtualClock, name?: string, parent?: VirtualScope) {
    this.clock = clock;
    this.name = name;
    this.#parent = parent;
  }

  /** Whether a timer that its code has created is pending. */
  get ownsTimer(): boolean {
    return this.#pendingTimers > 0;
  }

  /** Counts a timer, also for the delivery that this one is part of. */
  count(change: 1 | -1): void {
    this.#pendingTimers += change;
    this.#parent?.count(change);
  }

  /** See {@link TimeScope.track}. */
  track<T>(io: () => Promise<T>): Promise<T> {
    return this.clock.activity.track(io);
  }

  /** See {@link TimeScope.delivery}. */
  async delivery<T>(name: string, handle: () => Promise<T>): Promise<T> {
    const { inWork, activity } = this.clock;
    const scope = new VirtualScope(this.clock, name, this);
    inWork.add(scope);
    activity.note();
    try {
      return await timeScope.run(scope, handle);
    } finally {
      inWork.delete(scope);
      activity.note();
    }
  }

  /** See {@link TimeScope.random}. */
  random(): number {
    return this.clock.random();
  }
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
