import { type LockObserver, timeScope } from "../src/clock.ts";
import { hostDeadline } from "./test_time.ts";

/** How many statements wait for locks in a database, or why that is not known. */
export type LockAnswer = { readonly count: number } | { readonly unknown: string };

/** Asks databases how many statements wait there for locks, and does not wait long for an answer. */
export class LockWaits {
  readonly #asking = new Map<LockObserver, Promise<LockAnswer>>();

  /**
   * Asks a database, unless it still owes the answer to the question before. Where there is none,
   * nothing waits. Never rejects.
   */
  ask(database: LockObserver | undefined): Promise<LockAnswer> {
    if (database === undefined) return Promise.resolve({ count: 0 });
    const asking = this.#asking.get(database) ?? this.#ask(database);
    return hostDeadline(LONGEST_QUESTION, asking, LATE);
  }

  #ask(database: LockObserver): Promise<LockAnswer> {
    const asking = timeScope.run(undefined, () => answerOf(database))
      .finally(() => this.#asking.delete(database));
    this.#asking.set(database, asking);
    return asking;
  }
}

async function answerOf(database: LockObserver): Promise<LockAnswer> {
  try {
    const count = await database.countLockWaits();
    return count === undefined ? { unknown: "its driver cannot tell" } : { count };
  } catch (error) {
    return { unknown: error instanceof Error ? error.message : String(error) };
  }
}

/** In milliseconds. */
const LONGEST_QUESTION = 1_000;
/** All connections may be taken, by those who wait and by those for whom they wait. */
const LATE: LockAnswer = {
  unknown: `there was no answer within ${LONGEST_QUESTION} ms; give the driver more connections`,
};
