import { backoff } from "./backoff.ts";
import { inRealTime, sleep, stepsInThisContext } from "./clock.ts";
import type { Driver, LockHolder, QueryResult, Session, SqlRow } from "./driver/driver.ts";
import { bind, type Statement } from "./driver/statement.ts";
import { runStep, type Steps } from "./driver/steps.ts";
import { DriverError } from "./errors.ts";
import { refuseInside } from "./inside_transaction.ts";

/** A transaction in which a caller's statements run, whoever ends it. */
export interface OpenTransaction {
  /** The transaction as those who use the database's client know it. */
  readonly handle: unknown;
  /** Runs a statement and returns its rows and what it has changed. */
  run<Values>(statement: Statement<Values>, values: Values): Promise<QueryResult>;
}

/** A transaction that stays open for as long as a row is held. */
export interface HeldTransaction extends OpenTransaction {
  /** Aborts, with a `DriverError`, when the connection is gone and the transaction with it. */
  readonly lost: AbortSignal;
  /** Takes the lock of a key until the transaction ends, without waiting; whether it is free. */
  tryLock(key: string): Promise<boolean>;
  /** Runs steps. */
  runSteps<T>(makeSteps: () => Steps<T>): Promise<T>;
  /** Commits, and gives the connection back whatever comes of it. */
  commit(): Promise<void>;
  /** Rolls back, and gives the connection back. */
  rollback(): Promise<void>;
}

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

/** A driver's sessions as the core uses them: every call is I/O, and passes in real time. */
export class Pool {
  readonly #driver: Driver;
  #longestWrite = Infinity;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  /** Does again what met with a conflict, from its beginning. */
  retrying<T>(attempt: () => Promise<T>): Promise<T> {
    return withoutConflicts(attempt);
  }

  /** Opens the database. */
  open(): Promise<void> {
    return inRealTime(() => this.#driver.open());
  }

  /** Closes the database. */
  close(): Promise<void> {
    return inRealTime(() => this.#driver.close());
  }

  /** Whether all transactions that write wait for one another. */
  get hasOneWriter(): boolean {
    return this.#driver.hasOneWriter ?? false;
  }

  /**
   * How long, in milliseconds, a transaction may keep all other writers waiting: half of the shortest
   * lease, which another must be able to renew.
   */
  get longestWrite(): number {
    return this.#longestWrite;
  }

  /** Leases of this length are renewed through this pool. */
  expectLease(milliseconds: number): void {
    this.#longestWrite = Math.min(this.#longestWrite, milliseconds / 2);
  }

  /**
   * Lets statements run in a transaction that the caller has opened.
   *
   * @throws {TypeError} if it is none that the driver knows
   */
  join(tx: unknown): OpenTransaction {
    const joined = this.#driver.join(tx);
    return {
      handle: tx,
      run: (statement, values) => {
        const params = bind(statement, values);
        return inRealTime(() => joined.query(statement.text, params));
      },
    };
  }

  /** Makes sure that `holdLocks` can be relied on. */
  enableLocks(): Promise<void> {
    return inRealTime(() => this.#driver.enableLocks());
  }

  /** Runs one statement on a session of its own. */
  async query<Values>(
    statement: Statement<Values>,
    values: Values,
  ): Promise<readonly SqlRow[]> {
    return (await this.run(statement, values)).rows;
  }

  /** Runs one statement on a session of its own; its rows, and what it has changed. */
  run<Values>(statement: Statement<Values>, values: Values): Promise<QueryResult> {
    return withoutConflicts(() => this.#runOnce(statement, values));
  }

  async #runOnce<Values>(statement: Statement<Values>, values: Values): Promise<QueryResult> {
    const session = await this.#session();
    try {
      return await runOn(session, statement, values);
    } finally {
      await inRealTime(() => session.release());
    }
  }

  /** Opens a transaction on a connection of its own. End it, whatever happens. */
  async hold(): Promise<HeldTransaction> {
    return new HeldSession(await this.#begun());
  }

  /** Opens a session for locks. Release it, whatever happens. */
  async holdLocks(): Promise<LockSession> {
    const session = await this.#session();
    if (session.transact !== undefined) return new LockingSession(session);
    await this.#begin(session);
    return new LockingSession(session);
  }

  /**
   * Runs steps in a transaction as `transaction` does, under the lock of a key, which is taken by an
   * earlier statement of the transaction; `undefined` if somebody else has the lock.
   */
  transactionUnder<T>(key: string, makeSteps: () => Steps<T>): Promise<T | undefined> {
    return withoutConflicts(() => this.#transactUnderOnce(key, makeSteps));
  }

  async #transactUnderOnce<T>(key: string, makeSteps: () => Steps<T>): Promise<T | undefined> {
    const transaction = await this.hold();
    let result: T | undefined;
    try {
      if (await transaction.tryLock(key)) result = await transaction.runSteps(makeSteps);
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
    await transaction.commit();
    return result;
  }

  /** Runs steps in a transaction that is committed when they return, and rolled back if they throw. */
  transaction<T>(makeSteps: () => Steps<T>): Promise<T> {
    return withoutConflicts(() => this.#transactOnce(makeSteps));
  }

  async #transactOnce<T>(makeSteps: () => Steps<T>): Promise<T> {
    const session = await this.#session();
    try {
      if (session.transact !== undefined) return await transactAtOnce(session, makeSteps);
      await inRealTime(() => session.begin());
      const result = await runSteps(session, makeSteps());
      await inRealTime(() => session.commit());
      return result;
    } finally {
      await inRealTime(() => session.release());
    }
  }

  // deno-lint-ignore require-await -- a refusal is a rejection
  async #session(): Promise<Session> {
    if (this.hasOneWriter) refuseInside(this);
    return inRealTime(() => this.#driver.session());
  }

  async #begun(): Promise<Session> {
    const session = await this.#session();
    await this.#begin(session);
    return session;
  }

  async #begin(session: Session): Promise<void> {
    try {
      await inRealTime(() => session.begin());
    } catch (error) {
      await inRealTime(() => session.release());
      throw error;
    }
  }
}

/** A deadlock leaves nothing behind: what met with one is tried again, but not for ever. */
async function withoutConflicts<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1;; tries++) {
    try {
      return await attempt();
    } catch (error) {
      const conflict = error instanceof DriverError && error.kind === "conflict";
      if (!conflict || tries === MOST_TRIES) throw error;
    }
    const pause = backoff(tries, BETWEEN_CONFLICTS);
    await inRealTime(() => sleep(pause));
  }
}

const MOST_TRIES = 10;
/** In milliseconds. */
const BETWEEN_CONFLICTS = { first: 10, cap: 200 };

function transactAtOnce<T>(session: Session, makeSteps: () => Steps<T>): Promise<T> {
  const bound = stepsInThisContext(makeSteps);
  return inRealTime(() => session.transact!(bound));
}

async function runSteps<T>(session: Session, steps: Steps<T>): Promise<T> {
  let next = steps.next();
  while (!next.done) {
    const step = next.value;
    next = steps.next(await inRealTime(() => runStep(session, step)));
  }
  return next.value;
}

/** A transaction that tells when it is ended, whichever way. */
export function withEnd(transaction: HeldTransaction, onEnd: () => void): HeldTransaction {
  return {
    handle: transaction.handle,
    lost: transaction.lost,
    tryLock: (key) => transaction.tryLock(key),
    run: (statement, values) => transaction.run(statement, values),
    runSteps: (makeSteps) => transaction.runSteps(makeSteps),
    commit: () => {
      onEnd();
      return transaction.commit();
    },
    rollback: () => {
      onEnd();
      return transaction.rollback();
    },
  };
}

class HeldSession implements HeldTransaction {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  get lost(): AbortSignal {
    return this.#session.lost;
  }

  get handle(): unknown {
    return this.#session.handle;
  }

  async tryLock(key: string): Promise<boolean> {
    return await inRealTime(() => this.#session.tryLock(key)) !== undefined;
  }

  run<Values>(statement: Statement<Values>, values: Values): Promise<QueryResult> {
    return runOn(this.#session, statement, values);
  }

  runSteps<T>(makeSteps: () => Steps<T>): Promise<T> {
    return runSteps(this.#session, makeSteps());
  }

  async commit(): Promise<void> {
    try {
      await inRealTime(() => this.#session.commit());
    } finally {
      await this.rollback();
    }
  }

  rollback(): Promise<void> {
    return inRealTime(() => this.#session.release());
  }
}

class LockingSession implements LockSession {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  get lost(): AbortSignal {
    return this.#session.lost;
  }

  get transaction(): OpenTransaction | undefined {
    const session = this.#session;
    if (session.transact !== undefined) return undefined;
    return {
      handle: session.handle,
      run: (statement, values) => runOn(session, statement, values),
    };
  }

  tryLock(key: string): Promise<LockHolder | undefined> {
    return inRealTime(() => this.#session.tryLock(key));
  }

  transact<T>(makeSteps: () => Steps<T>): Promise<T> {
    return this.#run(makeSteps, () => this.#session.checkpoint!());
  }

  finish<T>(makeSteps: () => Steps<T>): Promise<T> {
    return this.#run(makeSteps, () => this.#session.commit());
  }

  /** Where transactions do not run at once, one is open all the time: the locks are its own. */
  async #run<T>(makeSteps: () => Steps<T>, commit: () => Promise<void>): Promise<T> {
    if (this.#session.transact !== undefined) return await transactAtOnce(this.#session, makeSteps);
    const result = await runSteps(this.#session, makeSteps());
    await inRealTime(commit);
    return result;
  }

  release(): Promise<void> {
    return inRealTime(() => this.#session.release());
  }
}

function runOn<Values>(
  session: Session,
  statement: Statement<Values>,
  values: Values,
): Promise<QueryResult> {
  const params = bind(statement, values);
  return inRealTime(() => session.query(statement.text, params));
}
