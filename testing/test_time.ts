/** What the virtual and the live clock of a test share: their shape, and what is in flight. */

import { setImmediate, setTimeout } from "node:timers";
import { timeScope } from "../src/clock.ts";
import type { Duration } from "../src/duration.ts";

export type { Duration, DurationLike } from "../src/duration.ts";

/** What created a timer. */
export type TimerKind = "setTimeout" | "setInterval" | "AbortSignal.timeout";

/** A timer that has not fired yet, as a leak report shows it. */
export interface PendingTimer {
  /** What created it. */
  readonly kind: TimerKind;
  /** When it fires, in milliseconds since 1970. */
  readonly due: number;
  /** Whether it would keep a process alive: false after `unref()`, and for `AbortSignal.timeout`. */
  readonly refed: boolean;
  /** The delivery whose handler created it, where one did. */
  readonly delivery: string | undefined;
  /** Where it was created: the stack's frames, one a line. */
  readonly stack: string;
}

/** The clock of a test. One test body runs on the virtual and on the live one. */
export interface TestTime extends Disposable {
  /** What the app takes for the present, in milliseconds since 1970. */
  readonly now: number;
  /** Milliseconds since this clock started. */
  readonly elapsed: number;
  /** The timers that have not fired yet, in the order in which they will; empty on a live clock. */
  readonly pending: readonly PendingTimer[];
  /** Runs code as part of the app. */
  run<T>(fn: () => T): T;
  /** Runs I/O in real time, outside the app's context; in flight until it settles. */
  track<T>(io: () => Promise<T>): Promise<T>;
  /** Resolves when the app has done all it can do without time passing. */
  quiet(): Promise<void>;
  /** Lets time pass, then waits until the app is quiet. */
  advance(duration: Duration): Promise<void>;
  /** Lets time pass up to an instant, which must not lie in the past. */
  advanceTo(time: number | Date): Promise<void>;
  /** Waits no longer for deliveries that wait for what no timer drives. */
  giveUp(): void;
  /** Nothing counts as quiet, so that a virtual clock stands still, until this is disposed of. */
  hold(): Disposable;
}

/** Counts what is under way, and tells when all of it has come to rest. */
export class Activity {
  #changes = 0;
  #inFlight = 0;
  #holds = 0;
  #resting: (() => void)[] = [];

  /** Grows with everything that happens. */
  get changes(): number {
    return this.#changes;
  }

  /** Something happened. */
  note(): void {
    this.#changes++;
  }

  /** Runs I/O outside of every time scope; in flight until it settles. */
  async track<T>(io: () => Promise<T>): Promise<T> {
    this.#inFlight++;
    this.note();
    try {
      return await timeScope.run(undefined, io);
    } finally {
      this.#inFlight--;
      this.#ended();
    }
  }

  /** Nothing counts as calm until this is disposed of. */
  hold(): Disposable {
    let open = true;
    this.#holds++;
    return {
      [Symbol.dispose]: (): void => {
        if (!open) return;
        open = false;
        this.#holds--;
        this.#ended();
      },
    };
  }

  /** Resolves when nothing is in flight or held, and two macrotasks in a row changed nothing. */
  async calm(): Promise<void> {
    for (let calmTurns = 0; calmTurns < 2;) {
      if (this.#busy) await this.#rest();
      const before = this.#changes;
      await macrotask();
      calmTurns = !this.#busy && this.#changes === before ? calmTurns + 1 : 0;
    }
  }

  get #busy(): boolean {
    return this.#inFlight > 0 || this.#holds > 0;
  }

  #rest(): Promise<void> {
    return new Promise((resolve) => this.#resting.push(resolve));
  }

  #ended(): void {
    this.note();
    if (this.#busy) return;
    for (const wake of this.#resting.splice(0)) wake();
  }
}

/** The end of the advance that was asked for. */
export function futureTime(time: number | Date, now: number): number {
  const end = Number(time);
  if (end >= now && end < Infinity) return end;
  throw new RangeError(
    `Cannot advance to ${String(time)} (${end}): it is ${new Date(now).toISOString()} (${now}); ` +
      `give a time that is not past`,
  );
}

/** The host clock, whatever the globals say: milliseconds since 1970. */
export function hostNow(): number {
  return HostDate.now();
}

/** A real turn of the event loop, the cheapest there is (microseconds). */
export function macrotask(): Promise<void> {
  return new Promise((resolve) => void hostSetImmediate(resolve));
}

/** Sleeps in real time. */
export function hostSleep(ms: number): Promise<void> {
  return new Promise((resolve) => void hostSetTimeout(resolve, ms));
}

/** Captured on load: on Node a named import follows whoever patches the module later. */
const hostSetTimeout = setTimeout;
const hostSetImmediate = setImmediate;
const HostDate = Date;
