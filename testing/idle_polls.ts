import { after, thisContext, type Timer } from "../src/clock.ts";
import type { NextDue } from "../src/driver/dialect.ts";
import type { IdleLoop, IdleSleep } from "../src/idle_sleep.ts";
import type { TestTime } from "./test_time.ts";

/**
 * Leaves out the polls of virtual time that would find nothing. A loop still looks only at the ticks of
 * its poll interval, but only if a row is due then; and whether one is is asked only once something has
 * happened that may have written rows: a delivery has ended, a timer of the service has fired, the test
 * has done something.
 */
export class IdlePolls implements IdleSleep {
  readonly #now: () => number;
  readonly #start: number;
  readonly #sleepers = new Set<Sleeper>();
  /** The loops that have been sent to look for rows which somebody else may hold. */
  readonly #vain = new WeakMap<IdleLoop, Vain>();
  #happened = 0;

  /** @param now tells the virtual present, in milliseconds since 1970 */
  constructor(now: () => number) {
    this.#now = now;
    this.#start = now();
  }

  /** Something has happened: loops ask at their next tick. */
  disturb(): void {
    this.#happened++;
    for (const sleeper of this.#sleepers) sleeper.endBy(this.#nextTick(sleeper.loop));
  }

  /** See {@link IdleSleep}. */
  async sleep(loop: IdleLoop): Promise<void> {
    let end: number | undefined = this.#firstLook(loop);
    while (end !== undefined && await this.#sleepUntil(end, loop)) {
      const happened = this.#happened;
      const next = await askOf(loop);
      if (next === undefined) return;
      end = happened === this.#happened ? this.#nextLook(loop, next) : this.#nextTick(loop);
    }
  }

  /** Whether it has slept to the end, and was not woken. */
  async #sleepUntil(end: number, loop: IdleLoop): Promise<boolean> {
    if (loop.wake.signal.aborted) return false;
    const sleeper = new Sleeper(loop, this.#now);
    this.#sleepers.add(sleeper);
    await sleeper.sleep(end);
    this.#sleepers.delete(sleeper);
    return !loop.wake.signal.aborted;
  }

  /** Whoever holds the rows that were looked for in vain disturbs, if it lives on this clock. */
  #firstLook(loop: IdleLoop): number {
    const next = this.#nextTick(loop);
    const vain = this.#vainOf(loop);
    if (vain === undefined) return next;
    return Math.min(vain.due, next + (2 ** vain.looks - 1) * loop.pollInterval);
  }

  /** When to ask again; `undefined` to look at once. */
  #nextLook(loop: IdleLoop, { dueIn, isWaiting }: NextDue): number | undefined {
    const due = dueIn === undefined ? Infinity : this.#tickFrom(loop, this.#now() + dueIn);
    const looks = Math.min(MOST_DOUBLINGS, (this.#vainOf(loop)?.looks ?? 0) + 1);
    this.#vain.delete(loop);
    if (!isWaiting) return due;
    this.#vain.set(loop, { looks, due, happened: this.#happened });
  }

  /** `undefined` where something has happened since. */
  #vainOf(loop: IdleLoop): Vain | undefined {
    const vain = this.#vain.get(loop);
    return vain?.happened === this.#happened ? vain : undefined;
  }

  #nextTick(loop: IdleLoop): number {
    return this.#tickFrom(loop, this.#now() + 1);
  }

  /** The first tick at this time or after it. */
  #tickFrom({ pollInterval, phase }: IdleLoop, time: number): number {
    const first = this.#start + Math.floor(phase * pollInterval);
    return first + Math.ceil((time - first) / pollInterval) * pollInterval;
  }
}

/** How idle loops sleep on each virtual clock. */
export const idlePolls: WeakMap<TestTime, IdlePolls> = new WeakMap();

/** What is known of a loop that was sent to look for rows. */
interface Vain {
  /** How often in a row. */
  readonly looks: number;
  /** When the next row is due that cannot be claimed yet. */
  readonly due: number;
  /** What had happened by then. */
  readonly happened: number;
}

/** A loop that gets no answer polls as usual. */
async function askOf(loop: IdleLoop): Promise<NextDue | undefined> {
  try {
    return await loop.nextDue();
  } catch {
    return undefined;
  }
}

/** A loop that sleeps until an end which can be moved forward. */
class Sleeper {
  readonly loop: IdleLoop;
  readonly #now: () => number;
  readonly #inContext = thisContext();
  readonly #done = Promise.withResolvers<void>();
  #end = Infinity;
  #timer: Timer | undefined;

  constructor(loop: IdleLoop, now: () => number) {
    this.loop = loop;
    this.#now = now;
  }

  /** Resolves at the end, or when the loop is woken. */
  async sleep(end: number): Promise<void> {
    const { signal } = this.loop.wake;
    signal.addEventListener("abort", this.#done.resolve as () => void);
    this.endBy(end);
    await this.#done.promise;
    signal.removeEventListener("abort", this.#done.resolve as () => void);
    this.#timer?.cancel();
  }

  /** Ends the sleep at this time at the latest. */
  endBy(end: number): void {
    if (end >= this.#end) return;
    this.#end = end;
    this.#timer?.cancel();
    this.#timer = this.#inContext(() => after(end - this.#now(), () => this.#done.resolve()));
  }
}

/** Of the poll interval, for a loop that looks in vain again and again. */
const MOST_DOUBLINGS = 20;
