import { inRealTime, type LockObserver } from "./clock.ts";
import type { LockHolder, Session } from "./driver/driver.ts";
import type { Steps } from "./driver/steps.ts";
import type { OpenTransaction } from "./held_transaction.ts";
import { runOn, runSteps, transactAtOnce } from "./run_on_session.ts";

/** A session that holds locks of keys for as long as it is open. */
export interface LockSession {
  /** The transaction that is open between the steps; none where they run in one turn. */
  readonly transaction: OpenTransaction | undefined;
  /** Aborts, with a `DriverError`, when the connection is gone and its locks with it. */
  readonly lost: AbortSignal;
  /** Takes the lock of a key, without waiting; `undefined` if somebody else has it. */
  tryLock(key: string): Promise<LockHolder | undefined>;
  /** Runs steps and commits what they have written; the locks stay. */
  transact<T>(makeSteps: () => Steps<T>): Promise<T>;
  /** Runs the last steps and commits what they have written: the locks end now, or by `release`. */
  finish<T>(makeSteps: () => Steps<T>): Promise<T>;
  /** Gives the locks back, and then the connection. */
  release(): Promise<void>;
}

/** A session of a driver that holds locks. */
export class LockingSession implements LockSession {
  readonly #session: Session;
  readonly #database: LockObserver;

  constructor(session: Session, database: LockObserver) {
    this.#session = session;
    this.#database = database;
  }

  get lost(): AbortSignal {
    return this.#session.lost;
  }

  get transaction(): OpenTransaction | undefined {
    const session = this.#session;
    const database = this.#database;
    if (session.transact !== undefined) return undefined;
    return {
      handle: session.handle,
      run: (statement, values) => runOn(session, database, statement, values),
    };
  }

  tryLock(key: string): Promise<LockHolder | undefined> {
    return inRealTime(() => this.#session.tryLock(key), "(take a lock)", this.#database);
  }

  transact<T>(makeSteps: () => Steps<T>): Promise<T> {
    return this.#run(makeSteps, () => this.#session.checkpoint!());
  }

  finish<T>(makeSteps: () => Steps<T>): Promise<T> {
    return this.#run(makeSteps, () => this.#session.commit());
  }

  /** Where transactions do not run at once, one is open all the time: the locks are its own. */
  async #run<T>(makeSteps: () => Steps<T>, commit: () => Promise<void>): Promise<T> {
    const [session, database] = [this.#session, this.#database];
    if (session.transact !== undefined) return await transactAtOnce(session, database, makeSteps);
    const result = await runSteps(session, database, makeSteps());
    await inRealTime(commit, "COMMIT", database);
    return result;
  }

  release(): Promise<void> {
    return inRealTime(() => this.#session.release(), "ROLLBACK", this.#database);
  }
}
