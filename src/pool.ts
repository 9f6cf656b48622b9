import { inRealTime } from "./clock.ts";
import type { Driver, QueryResult, Session, SqlRow } from "./driver/driver.ts";
import { bind, type Statement } from "./driver/statement.ts";

/** The statements of one transaction. */
export interface Transaction {
  /** Runs a statement and returns its rows. */
  query<Values>(statement: Statement<Values>, values: Values): Promise<readonly SqlRow[]>;
  /** Runs a statement and returns its rows and what it has changed. */
  run<Values>(statement: Statement<Values>, values: Values): Promise<QueryResult>;
  /** Runs a statement once for each set of values. */
  runEach<Values>(
    statement: Statement<Values>,
    valueSets: readonly Values[],
  ): Promise<readonly QueryResult[]>;
}

/** A transaction that stays open for as long as a row is held. */
export interface HeldTransaction extends Transaction {
  /** Aborts, with a `DriverError`, when the connection is gone and the transaction with it. */
  readonly lost: AbortSignal;
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
  async run<Values>(statement: Statement<Values>, values: Values): Promise<QueryResult> {
    const session = await inRealTime(() => this.#driver.session());
    try {
      return await new SessionTransaction(session).run(statement, values);
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

  /** Runs `work` in a transaction that is committed when it resolves, else rolled back. */
  async transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const session = await inRealTime(() => this.#driver.session());
    try {
      await inRealTime(() => session.begin());
      const result = await work(new SessionTransaction(session));
      await inRealTime(() => session.commit());
      return result;
    } finally {
      await inRealTime(() => session.release());
    }
  }
}

class SessionTransaction implements Transaction {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  async query<Values>(
    statement: Statement<Values>,
    values: Values,
  ): Promise<readonly SqlRow[]> {
    return (await this.run(statement, values)).rows;
  }

  run<Values>(statement: Statement<Values>, values: Values): Promise<QueryResult> {
    const params = bind(statement, values);
    return inRealTime(() => this.#session.query(statement.text, params));
  }

  runEach<Values>(
    statement: Statement<Values>,
    valueSets: readonly Values[],
  ): Promise<readonly QueryResult[]> {
    const paramSets = valueSets.map((values) => bind(statement, values));
    return inRealTime(() => this.#session.queryEach(statement.text, paramSets));
  }
}

class HeldSession extends SessionTransaction implements HeldTransaction {
  readonly #session: Session;

  constructor(session: Session) {
    super(session);
    this.#session = session;
  }

  get lost(): AbortSignal {
    return this.#session.lost;
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
