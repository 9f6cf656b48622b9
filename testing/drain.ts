import { type Duration, toMilliseconds } from "../src/duration.ts";
import { DeclarationError } from "../src/errors.ts";
import type { Outcome } from "../src/outcome.ts";
import type { DeliveryRecord } from "../src/runtime.ts";
import type { SubscriptionLoop } from "../src/subscription_loop.ts";
import { FakeTimeError } from "./fake_time.ts";
import type { TestTime } from "./test_time.ts";

/** How far a drain goes. */
export interface DrainOptions {
  /** How far time may move: for so long, or up to an instant. Without end unless given. */
  readonly until?: Duration | Date;
  /** The drain ends when so many deliveries have ended. Unless given, 10,000 are an error. */
  readonly limit?: number;
  /** Whether the first error of a delivery ends the drain and is thrown. False unless given. */
  readonly throwErrors?: boolean;
}

/** What a drain has done. */
export interface DrainReport {
  /** How many deliveries have ended. */
  readonly deliveries: number;
  /** How many of them were settled, by outcome. */
  readonly outcomes: Readonly<Partial<Record<Outcome["kind"], number>>>;
  /** How many ended in an error. */
  readonly errors: number;
}

/** What a drain works with. */
export interface DrainedApp {
  readonly time: TestTime;
  readonly loops: readonly Pick<SubscriptionLoop, "queue" | "nextDue">[];
  /** Every delivery that has ended, in that order. */
  readonly ended: readonly DeliveryRecord[];
  /** Whether a delivery is in work. */
  isBusy(): boolean;
  /** Resolves when the app has done all it can do without time passing. */
  quiet(): Promise<void>;
}

/** Lets time pass until no message is left, due or not. */
export class Drain {
  readonly #app: DrainedApp;
  readonly #first: number;
  readonly #limit: number | undefined;
  readonly #throwErrors: boolean;
  readonly #end: number;
  #seen = -1;
  #steps = 0;
  #due = 0;

  /**
   * From now on.
   *
   * @throws {RangeError} if the limit or the end is no number
   */
  constructor(app: DrainedApp, { until, limit, throwErrors = false }: DrainOptions) {
    if (limit !== undefined && !(limit >= 0)) {
      throw new RangeError(`Cannot drain with the limit ${limit}: give 0 or more`);
    }
    this.#app = app;
    this.#first = app.ended.length;
    this.#limit = limit;
    this.#throwErrors = throwErrors;
    this.#end = endOf(until, app.time.now);
  }

  /** @throws the first error of a delivery, if that is asked for */
  async run(): Promise<DrainReport> {
    const { time, quiet } = this.#app;
    for (;;) {
      await quiet();
      if (this.#throwErrors) this.#throwFirst();
      if (this.#isEnough()) break;
      const isBusy = this.#app.isBusy();
      const due = isBusy ? time.now : await this.#firstDue();
      if (due === Infinity || due > this.#end || time.now >= this.#end) break;
      this.#countStep(due, isBusy);
      if (due > time.now) await time.advanceTo(due);
      else await time.step(this.#end);
    }
    return this.#report();
  }

  get #ended(): readonly DeliveryRecord[] {
    return this.#app.ended.slice(this.#first);
  }

  #throwFirst(): void {
    for (const { error } of this.#ended) if (error !== undefined) throw error;
  }

  #isEnough(): boolean {
    const length = this.#app.ended.length - this.#first;
    if (this.#limit !== undefined) return length >= this.#limit;
    if (length < MOST_DELIVERIES) return false;
    throw new FakeTimeError(
      "endless",
      `Cannot drain the app: ${MOST_DELIVERIES} deliveries have ended and messages are left, the ` +
        `last was ${describeEnd(this.#ended.at(-1)!)}; give its subscription maxAttempts, or the ` +
        `drain a limit or an end by until`,
    );
  }

  /** When the first message that is left is due. */
  async #firstDue(): Promise<number> {
    const { now } = this.#app.time;
    let first = Infinity;
    for (const loop of this.#app.loops) {
      const next = await loop.nextDue();
      if (next === undefined) throw unknown(loop);
      const { dueIn = Infinity, isWaiting } = next;
      first = Math.min(first, isWaiting ? now : now + dueIn);
    }
    return first;
  }

  /** Counts the steps in which no delivery ends, from the time on at which one could. */
  #countStep(due: number, isBusy: boolean): void {
    const { ended, time } = this.#app;
    if (ended.length !== this.#seen) {
      this.#seen = ended.length;
      this.#steps = 0;
      this.#due = due;
    }
    if (time.now < this.#due) return;
    this.#steps++;
    if (this.#steps > (isBusy ? MOST_STEPS_AT_WORK : MOST_STEPS)) throw stuck(isBusy);
  }

  #report(): DrainReport {
    const ended = this.#ended;
    const outcomes: Partial<Record<Outcome["kind"], number>> = {};
    for (const { settled, outcome } of ended) {
      if (settled) outcomes[outcome!.kind] = (outcomes[outcome!.kind] ?? 0) + 1;
    }
    const errors = ended.filter(({ error }) => error !== undefined).length;
    return { deliveries: ended.length, outcomes, errors };
  }
}

function stuck(isBusy: boolean): FakeTimeError {
  const reason = isBusy
    ? `a handler is still at work after ${MOST_STEPS_AT_WORK} timers; let it end`
    : `messages are left that it does not claim, because somebody else holds them or all of its ` +
      `workers are held; release them`;
  return new FakeTimeError("stuck", `Cannot drain the app: ${reason}, or give an end by until`);
}

function endOf(until: Duration | Date | undefined, now: number): number {
  if (until === undefined) return Infinity;
  if (!(until instanceof Date)) return now + toMilliseconds(until, "until");
  if (!Number.isNaN(until.getTime())) return until.getTime();
  throw new RangeError("Cannot drain until an Invalid Date: give a valid one");
}

function describeEnd({ queue, id, attempt, outcome, error }: DeliveryRecord): string {
  const nth = attempt === undefined ? "" : `, attempt ${attempt}`;
  const reason = error === undefined ? "" : ` after ${error}`;
  return `message ${id} of queue "${queue}"${nth}, which ended as ${outcome?.kind}${reason}`;
}

function unknown({ queue }: Pick<SubscriptionLoop, "queue">): DeclarationError {
  return new DeclarationError(
    `Cannot drain queue "${queue.name}": a statement of the service's own finds its rows, so that ` +
      `nobody knows whether any are left; use advance or waitFor`,
  );
}

const MOST_DELIVERIES = 10_000;
/** Without a delivery ending. */
const MOST_STEPS = 10_000;
/** Likewise while a handler is at work, whose lease is renewed. */
const MOST_STEPS_AT_WORK = 100 * MOST_STEPS;
