import { backoff } from "./backoff.ts";
import { inRealTime, sleep, stepsInThisContext } from "./clock.ts";
import type { Driver, QueryResult, Session, SqlRow } from "./driver/driver.ts";
import { bind, type Statement } from "./driver/statement.ts";
import { runStep, type Steps } from "./driver/steps.ts";
import { DriverError } from "./errors.ts";

/** A transaction that stays open for as long as a row is held. */
export interface HeldTransaction {
  /** Aborts, with a `DriverError`, when the connection is gone and the transaction with it. */
  readonly lost: AbortSignal;
  /** Runs a statement and returns its rows. */
  query<Values>(statement: Statement<Values>, values: Values): Promise<readonly SqlRow[]>;
  /** Runs a statement and returns its rows and what it has changed. */
  run<Values>(statement: Statement<Values>, values: Values): Promise<QueryResult>;
  /** Commits, and gives the connection back whatever comes of it. */
  commit(): Promise<void>;
  /** Rolls back, and gives the connection back. */
  rollback(): Promise<void>;
}

/** A driver's sessions as the core uses them: every call is I/O, and passes in real time. */
export class Pool {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  /** Opens the database. */
  open(): Promise<void> {
    return inRealTime(() => this.#driver.open());
  }

  /** Closes the database. */
  close(): Promise<void> {
    return inRealTime(() => this.#driver.close());
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
    const session = await inRealTime(() => this.#driver.session());
    try {
      return await runOn(session, statement, values);
    } finally {
      await inRealTime(() => session.release());
    }
  }

  /** Opens a transaction on a connection of its own. End it, whatever happens. */
  async hold(): Promise<HeldTransaction> {
    const session = await inRealTime(() => this.#driver.session());
    try {
      await inRealTime(() => session.begin());
      return new HeldSession(session);
    } catch (error) {
      await inRealTime(() => session.release());
      throw error;
    }
  }

  /** Runs steps in a transaction that is committed when they return, and rolled back if they throw. */
  transaction<T>(makeSteps: () => Steps<T>): Promise<T> {
    return withoutConflicts(() => this.#transactOnce(makeSteps));
  }

  async #transactOnce<T>(makeSteps: () => Steps<T>): Promise<T> {
    const session = await inRealTime(() => this.#driver.session());
    try {
      if (session.transact !== undefined) {
        const bound = stepsInThisContext(makeSteps);
        return await inRealTime(() => session.transact!(bound));
      }
      return await transactByStep(session, makeSteps());
    } finally {
      await inRealTime(() => session.release());
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

async function transactByStep<T>(session: Session, steps: Steps<T>): Promise<T> {
  await inRealTime(() => session.begin());
  let next = steps.next();
  while (!next.done) {
    const step = next.value;
    next = steps.next(await inRealTime(() => runStep(session, step)));
  }
  await inRealTime(() => session.commit());
  return next.value;
}

class HeldSession implements HeldTransaction {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  get lost(): AbortSignal {
    return this.#session.lost;
  }

  async query<Values>(
    statement: Statement<Values>,
    values: Values,
  ): Promise<readonly SqlRow[]> {
    return (await this.run(statement, values)).rows;
  }

  run<Values>(statement: Statement<Values>, values: Values): Promise<QueryResult> {
    return runOn(this.#session, statement, values);
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

function runOn<Values>(
  session: Session,
  statement: Statement<Values>,
  values: Values,
): Promise<QueryResult> {
  const params = bind(statement, values);
  return inRealTime(() => session.query(statement.text, params));
}
