import { inRealTime, type LockObserver } from "./clock.ts";
import type { Driver, QueryResult, Session, SqlRow } from "./driver/driver.ts";
import type { Listening, NotificationListener } from "./driver/listen.ts";
import { bind, type Statement } from "./driver/statement.ts";
import type { Steps } from "./driver/steps.ts";
import { DeclarationError } from "./errors.ts";
import { HeldSession, type HeldTransaction, type OpenTransaction } from "./held_transaction.ts";
import { refuseInside } from "./inside_transaction.ts";
import { LockingSession, type LockSession } from "./lock_session.ts";
import { runOn, runSteps, transactAtOnce } from "./run_on_session.ts";
import { withoutConflicts } from "./without_conflicts.ts";

/** A driver's sessions as the core uses them: every call is I/O, and passes in real time. */
export class Pool implements LockObserver {
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

  /** How many statements wait for locks in this database; `undefined` if the driver cannot tell. */
  async countLockWaits(): Promise<number | undefined> {
    return await this.#driver.countLockWaits?.();
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
        return inRealTime(() => joined.query(statement.text, params), statement.text, this);
      },
    };
  }

  /** Makes sure that `holdLocks` can be relied on. */
  enableLocks(): Promise<void> {
    return inRealTime(() => this.#driver.enableLocks());
  }

  /**
   * Listens to what is notified under a name.
   *
   * @throws {DeclarationError} if the database has no notifications
   */
  // deno-lint-ignore require-await -- a refusal is a rejection
  async listen(channel: string, listener: NotificationListener): Promise<Listening> {
    if (this.#driver.listen === undefined) throw this.#noNotifications();
    return inRealTime(() => this.#driver.listen!(channel, listener));
  }

  /**
   * Notifies whoever listens.
   *
   * @throws {DeclarationError} if the database has no notifications
   */
  async notify(channel: string, payload: string): Promise<void> {
    const { notify } = this.#driver.dialect;
    if (notify === undefined) throw this.#noNotifications();
    await this.run(notify, { channel, payload });
  }

  #noNotifications(): DeclarationError {
    return new DeclarationError(
      `Cannot notify through ${this.#driver.name}: it has no notifications; use Postgres, or Redis`,
    );
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
      return await runOn(session, this, statement, values);
    } finally {
      await inRealTime(() => session.release(), "ROLLBACK", this);
    }
  }

  /** Opens a transaction on a connection of its own. End it, whatever happens. */
  async hold(): Promise<HeldTransaction> {
    return new HeldSession(await this.#begun(), this);
  }

  /** Opens a session for locks. Release it, whatever happens. */
  async holdLocks(): Promise<LockSession> {
    const session = await this.#session();
    if (session.transact !== undefined) return new LockingSession(session, this);
    await this.#begin(session);
    return new LockingSession(session, this);
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
      if (session.transact !== undefined) return await transactAtOnce(session, this, makeSteps);
      await inRealTime(() => session.begin(), "BEGIN", this);
      const result = await runSteps(session, this, makeSteps());
      await inRealTime(() => session.commit(), "COMMIT", this);
      return result;
    } finally {
      await inRealTime(() => session.release(), "ROLLBACK", this);
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
      await inRealTime(() => session.begin(), "BEGIN", this);
    } catch (error) {
      await inRealTime(() => session.release(), "ROLLBACK", this);
      throw error;
    }
  }
}
