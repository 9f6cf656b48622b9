/** What the virtual and the live clock of a test share: their shape, and what is in flight. */

import { clearTimeout, setImmediate, setTimeout } from "node:timers";
import { type LockObserver, timeScope } from "../src/clock.ts";
import type { Duration } from "../src/duration.ts";
import type { StatementLine } from "./statement_line.ts";

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

/** What one app sees of a clock. */
export interface AppTime {
  /** Runs code as part of the app. */
  run<T>(fn: () => T): T;
  /** Whether the code that asks is part of an app on this clock. */
  readonly isInside: boolean;
  /** The app's timers that have not fired yet; empty on a live clock. */
  readonly pending: readonly PendingTimer[];
  /**
   * Ends the app's code, as far as code can be ended from outside: its timers never fire, and what it
   * waits for of Holdfast never comes.
   */
  end(): void;
}

/** How an app's own clock differs. */
export interface AppTimeOptions {
  /** By how many milliseconds the host's clock is ahead of the database's; negative is behind. */
  readonly skew?: number;
}

/** The clock of a test. One test body runs on the virtual and on the live one. */
export interface TestTime extends Disposable {
  /** Whether it stands still but for what the test says. */
  readonly isVirtual: boolean;
  /** What the app takes for the present, in milliseconds since 1970. */
  readonly now: number;
  /** Milliseconds since this clock started. */
  readonly elapsed: number;
  /** The timers that have not fired yet, in the order in which they will; empty on a live clock. */
  readonly pending: readonly PendingTimer[];
  /** Runs code as part of an app. */
  run<T>(fn: () => T): T;
  /** What one more app sees of this clock. */
  forApp(options?: AppTimeOptions): AppTime;
  /** Runs I/O in real time, outside the app's context; in flight until it settles. */
  track<T>(io: () => Promise<T>): Promise<T>;
  /** Resolves when the app has done all it can do without time passing. */
  quiet(): Promise<void>;
  /** Lets time pass, then waits until the app is quiet. */
  advance(duration: Duration): Promise<void>;
  /** Lets time pass up to an instant, which must not lie in the past. */
  advanceTo(time: number | Date): Promise<void>;
  /**
   * Lets time pass up to the next timer where it is virtual, else a little.
   *
   * @param latest where it stands at the latest
   */
  step(latest?: number): Promise<void>;
  /** A delivery stands still, at a seam, until this settles. */
  stand(until: Promise<void>): Promise<void>;
  /** The test has done something that the app may find in its database. */
  disturb(): void;
  /** Waits no longer for deliveries that wait for what no timer drives. */
  giveUp(): void;
  /** Nothing counts as quiet, so that a virtual clock stands still, until this is disposed of. */
  hold(): Disposable;
}

/** I/O in flight. */
export interface InFlight {
  /** When it began, by {@link hostMonotonic}. */
  readonly since: number;
  /** The statement; `undefined` for what is none, and may take as long as it likes. */
  readonly text?: string;
  /** What it was sent to. */
  readonly database?: LockObserver;
  /** The delivery whose handler has sent it. */
  readonly delivery?: object;
}

/** Counts what is under way, and tells when all of it has come to rest. */
export class Activity {
  readonly #inFlight = new Set<InFlight>();
  readonly #passedOver = new Set<InFlight>();
  /** The statements whose answers the next in line waits for. */
  readonly #inTurn = new Set<InFlight>();
  readonly #resting = new Set<() => void>();
  readonly #line: StatementLine | undefined;
  #changes = 0;
  #releases = 0;
  #holds = 0;

  /** @param line in which statements wait for their turn; they are sent at once unless given */
  constructor(line?: StatementLine) {
    this.#line = line;
  }

  /** Grows with everything that happens. */
  get changes(): number {
    return this.#changes;
  }

  /** Grows with everything after which a lock of a database may be free. */
  get releases(): number {
    return this.#releases;
  }

  /** What is in flight, also what is passed over; not what waits for its turn. */
  get inFlight(): readonly InFlight[] {
    return [...this.#inFlight];
  }

  /** Whether it is held. */
  get isHeld(): boolean {
    return this.#holds > 0;
  }

  /** Something happened. */
  note(): void {
    this.#changes++;
  }

  /** Something happened after which a lock of a database may be free. */
  noteRelease(): void {
    this.#releases++;
    this.note();
  }

  /** Runs I/O outside of every time scope; in flight until it settles. */
  async track<T>(io: () => Promise<T>, what: Omit<InFlight, "since"> = {}): Promise<T> {
    const line = what.text === undefined ? undefined : this.#line;
    this.note();
    await line?.enter();
    const entry = { ...what, since: hostMonotonic() };
    this.#inFlight.add(entry);
    if (line !== undefined) this.#inTurn.add(entry);
    try {
      return await timeScope.run(undefined, io);
    } finally {
      this.#inFlight.delete(entry);
      this.#endTurn(entry);
      if (this.#passedOver.delete(entry) || what.delivery !== undefined) this.noteRelease();
      this.#ended();
    }
  }

  /** From now on nothing else of what is in flight now is passed over: it is as if it were not. */
  passOver(entries: readonly InFlight[]): void {
    this.#passedOver.clear();
    for (const entry of entries) {
      if (!this.#inFlight.has(entry)) continue;
      this.#passedOver.add(entry);
      this.#endTurn(entry);
    }
    this.#wake();
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

  /**
   * Resolves to true when nothing is in flight or held, and two macrotasks in a row changed nothing;
   * to false if it was in flight or held for so many milliseconds of real time.
   */
  async calm(patience: number = Infinity): Promise<boolean> {
    for (let calmTurns = 0; calmTurns < 2;) {
      if (this.#busy && !await this.#rest(patience)) return false;
      const before = this.#changes;
      await macrotask();
      calmTurns = !this.#busy && this.#changes === before ? calmTurns + 1 : 0;
    }
    return true;
  }

  #endTurn(entry: InFlight): void {
    if (this.#inTurn.delete(entry)) this.#line!.leave();
  }

  get #busy(): boolean {
    const isWaiting = (this.#line?.length ?? 0) > 0;
    return isWaiting || this.#inFlight.size > this.#passedOver.size || this.isHeld;
  }

  #rest(patience: number): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (isAtRest: boolean): void => {
        hostClearTimeout(timer);
        this.#resting.delete(wake);
        resolve(isAtRest);
      };
      const wake = (): void => end(true);
      const timer = patience < Infinity ? hostSetTimeout(() => end(false), patience) : undefined;
      this.#resting.add(wake);
    });
  }

  #ended(): void {
    this.note();
    this.#wake();
  }

  #wake(): void {
    if (this.#busy) return;
    for (const wake of [...this.#resting]) wake();
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

/** Milliseconds on a clock of the host that never steps, whatever the globals say. */
export function hostMonotonic(): number {
  return hostPerformanceNow();
}

/** A real turn of the event loop, the cheapest there is (microseconds). */
export function macrotask(): Promise<void> {
  return new Promise((resolve) => void hostSetImmediate(resolve));
}

/** Runs work of an app; once that has ended, neither the work begins nor what waits for it goes on. */
export async function unlessEnded<T>(
  app: { readonly hasEnded: boolean },
  work: () => Promise<T>,
): Promise<T> {
  if (app.hasEnded) return await never();
  try {
    return await work();
  } finally {
    if (app.hasEnded) await never();
  }
}

function never(): Promise<never> {
  return new Promise(() => {});
}

/** Sleeps in real time. */
export function hostSleep(ms: number): Promise<void> {
  return new Promise((resolve) => void hostSetTimeout(resolve, ms));
}

/** Settles as the work does or, when that takes longer in real time, resolves to something else. */
export function hostDeadline<T>(ms: number, work: Promise<T>, late: T): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = hostSetTimeout(() => resolve(late), ms);
    work.then(resolve, reject).finally(() => hostClearTimeout(timer));
  });
}

/** Captured on load: on Node a named import follows whoever patches the module later. */
export const hostSetTimeout: typeof setTimeout = setTimeout;
export const hostClearTimeout: typeof clearTimeout = clearTimeout;
const hostPerformanceNow = performance.now.bind(performance);
const hostSetImmediate = setImmediate;
const HostDate = Date;
