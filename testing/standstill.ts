import type { LockObserver } from "../src/clock.ts";
import { type LockAnswer, LockWaits } from "./lock_waits.ts";
import { stuckDelivery, stuckStatement } from "./stuck.ts";
import { hostMonotonic, hostSleep, type InFlight, macrotask } from "./test_time.ts";
import type { VirtualClock, VirtualScope } from "./virtual_scope.ts";

/**
 * The time in which a virtual clock may not move, because something is under way that no timer
 * drives.
 *
 * A statement that waits for a lock of a delivery that sleeps would keep the clock from ever waking
 * that delivery. So what holds the clock up for 1 s of real time is passed over if, in each database,
 * as many statements wait for locks as are in flight, and some delivery sleeps; it is waited for
 * again as soon as a lock may have become free.
 */
export class Standstill {
  readonly #clock: VirtualClock;
  readonly #patience: number;
  readonly #lockWaits = new LockWaits();
  #passedOver: ReadonlySet<object> = new Set();
  #givenUp: ReadonlySet<InFlight> = new Set();
  /** What the clock's activity has counted when something was passed over. */
  #releases = 0;
  #askAfter: number;
  #answers: readonly LockAnswer[] = [];

  /**
   * Of a clock.
   *
   * @param patience how long it may be held up by deliveries and statements, in milliseconds
   */
  constructor(clock: VirtualClock, patience: number) {
    this.#clock = clock;
    this.#patience = patience;
    this.#askAfter = Math.min(ASK_FIRST, patience);
  }

  /**
   * Resolves when nothing is in flight or held, two macrotasks in a row were calm, and every delivery
   * in work waits for a virtual timer of its own; what is passed over does not count.
   *
   * @throws {FakeTimeError} if deliveries or statements take longer than they may, or code has waited
   * in a loop for the clock to move
   */
  async end(): Promise<void> {
    const { activity } = this.#clock;
    let changes = -1;
    let since = 0;
    let asked = 0;
    for (let turn = 0;; turn++) {
      const isCalm = await activity.calm(LOOK_EVERY);
      if (isCalm && this.#waiting.length === 0 && !this.#putBack()) return this.#throwBusyLoop();
      if (activity.changes !== changes) {
        changes = activity.changes;
        since = asked = hostMonotonic();
        turn = 0;
      }
      if (this.#isUnlimited) continue;
      if (hostMonotonic() - asked > this.#askAfter) {
        await this.#passOverBlocked();
        asked = hostMonotonic();
      }
      if (activity.changes !== changes) continue;
      if (this.#isHeldUp && hostMonotonic() - since > this.#patience) {
        this.#throwBusyLoop();
        throw this.#stuck();
      }
      if (isCalm) await (turn < EAGER_TURNS ? macrotask() : hostSleep(1));
    }
  }

  /** Passes over all deliveries and statements that are under way, for good. */
  giveUp(): void {
    const { inWork, activity } = this.#clock;
    inWork.clear();
    this.#givenUp = new Set(activity.inFlight.filter(({ text }) => text !== undefined));
    activity.passOver([...this.#givenUp]);
  }

  /** Deliveries that wait for what no virtual timer drives. */
  get #waiting(): readonly VirtualScope[] {
    return this.#unowned.filter((delivery) => !this.#passedOver.has(delivery));
  }

  get #unowned(): readonly VirtualScope[] {
    return [...this.#clock.inWork].filter((delivery) => !delivery.ownsTimer);
  }

  get #inFlight(): readonly InFlight[] {
    return this.#clock.activity.inFlight.filter((entry) => !this.#givenUp.has(entry));
  }

  /** Hooks, and what a test tracks itself, may take as long as they like. */
  get #isUnlimited(): boolean {
    return this.#clock.activity.isHeld || this.#inFlight.some(({ text }) => text === undefined);
  }

  get #isHeldUp(): boolean {
    return this.#waiting.length > 0 || this.#statements.length > 0;
  }

  get #statements(): readonly InFlight[] {
    return this.#inFlight.filter((entry) => !this.#passedOver.has(keyOf(entry)));
  }

  /** Whether something has to be waited for again, because a lock may have become free. */
  #putBack(): boolean {
    if (this.#passedOver.size === 0 || this.#releases === this.#clock.activity.releases) {
      return false;
    }
    this.#passOver(new Set());
    return true;
  }

  async #passOverBlocked(): Promise<void> {
    const { activity, inWork, standing } = this.#clock;
    const { changes } = activity;
    const heldUp = this.#heldUp();
    this.#answers = await Promise.all(
      Array.from(heldUp.keys(), (database) => this.#lockWaits.ask(database)),
    );
    if (activity.changes !== changes) return;
    const counts = this.#answers.map((answer) => "count" in answer ? answer.count : 0);
    const allWait = [...heldUp.values()].every(({ size }, index) => counts[index]! >= size);
    const oneSleeps = standing.size > 0 || [...inWork].some((delivery) => delivery.ownsTimer);
    if (!allWait || !oneSleeps) return;
    this.#passOver(new Set([...heldUp.values()].flatMap((keys) => [...keys])));
    this.#askAfter = Math.min(ASK_AGAIN, this.#patience);
  }

  /** All that holds the clock up, or is passed over, by database: one for each delivery or statement. */
  #heldUp(): ReadonlyMap<LockObserver | undefined, ReadonlySet<object>> {
    const byDatabase = new Map<LockObserver | undefined, Set<object>>();
    const add = (database: LockObserver | undefined, key: object): void => {
      byDatabase.set(database, (byDatabase.get(database) ?? new Set()).add(key));
    };
    const inFlight = this.#inFlight;
    for (const entry of inFlight) add(entry.database, keyOf(entry));
    const senders = new Set(inFlight.map(keyOf));
    for (const delivery of this.#unowned) {
      if (!senders.has(delivery)) add(delivery.database, delivery);
    }
    return byDatabase;
  }

  #passOver(keys: ReadonlySet<object>): void {
    const { activity } = this.#clock;
    this.#passedOver = keys;
    this.#releases = activity.releases;
    const blocked = this.#inFlight.filter((entry) => keys.has(keyOf(entry)));
    activity.passOver([...blocked, ...this.#givenUp]);
  }

  /** Code that has waited in a loop was told so, but it may have caught that. */
  #throwBusyLoop(): void {
    const error = this.#clock.busyLoop.take();
    if (error !== undefined) throw error;
  }

  #stuck(): Error {
    const statements = this.#statements;
    return statements.length > 0
      ? stuckStatement(statements, this.#answers)
      : stuckDelivery(this.#waiting, this.#patience, this.#answers);
  }
}

/** The statements of one handler wait for one another: they count as one. */
function keyOf(entry: InFlight): object {
  return entry.delivery ?? entry;
}

/** When what is in flight is first taken for blocked, in milliseconds of real time. */
const ASK_FIRST = 1_000;
/** Likewise once something was: whoever has a lock given must have had the time to go on. */
const ASK_AGAIN = 150;
const LOOK_EVERY = 50;
/** Macrotasks for what settles at once, before waiting costs milliseconds. */
const EAGER_TURNS = 50;
