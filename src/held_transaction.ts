import { inRealTime, type LockObserver } from "./clock.ts";
import type { QueryResult, Session } from "./driver/driver.ts";
import type { Statement } from "./driver/statement.ts";
import type { Steps } from "./driver/steps.ts";
import { ClosedError } from "./errors.ts";
import { runOn, runSteps } from "./run_on_session.ts";

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

/** A held transaction on a session of a driver. */
export class HeldSession implements HeldTransaction {
  readonly #session: Session;
  readonly #database: LockObserver;
  #hasEnded = false;

  constructor(session: Session, database: LockObserver) {
    this.#session = session;
    this.#database = database;
  }

  get lost(): AbortSignal {
    return this.#session.lost;
  }

  get handle(): unknown {
    return this.#session.handle;
  }

  async tryLock(key: string): Promise<boolean> {
    const take = () => this.#session.tryLock(key);
    return await inRealTime(take, "(take a lock)", this.#database) !== undefined;
  }

  // deno-lint-ignore require-await -- a refusal is a rejection
  async run<Values>(statement: Statement<Values>, values: Values): Promise<QueryResult> {
    this.#refuseEnded();
    return runOn(this.#session, this.#database, statement, values);
  }

  // deno-lint-ignore require-await -- a refusal is a rejection
  async runSteps<T>(makeSteps: () => Steps<T>): Promise<T> {
    this.#refuseEnded();
    return runSteps(this.#session, this.#database, makeSteps());
  }

  async commit(): Promise<void> {
    this.#refuseEnded();
    try {
      await inRealTime(() => this.#session.commit(), "COMMIT", this.#database);
    } finally {
      await this.rollback();
    }
  }

  rollback(): Promise<void> {
    this.#hasEnded = true;
    return inRealTime(() => this.#session.release(), "ROLLBACK", this.#database);
  }

  /** Its session would run what comes late by itself, and perhaps on another connection. */
  #refuseEnded(): void {
    if (!this.#hasEnded) return;
    throw new ClosedError("Cannot use a transaction that has ended: write before it is ended");
  }
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
