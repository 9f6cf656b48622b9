import type { DriverErrorKind } from "../errors.ts";
import type { Dialect } from "./dialect.ts";
import type { Form } from "./form.ts";
import type { Listening, NotificationListener } from "./listen.ts";
import type { Steps } from "./steps.ts";

/** A value that crosses a driver. Integers are exact: `bigint`, or a number where that is safe. */
export type SqlValue = null | string | number | bigint | Uint8Array;

/** A row by column name. */
export type SqlRow = Readonly<Record<string, SqlValue>>;

/** What a statement gave back. */
export interface QueryResult {
  /** The rows, in the database's order. */
  readonly rows: readonly SqlRow[];
  /** How many rows the statement wrote; 0 for one that returns rows. */
  readonly changes: number;
}

/** One connection to a database for as long as it is held. All calls are I/O and nothing else. */
export interface Session {
  /**
   * Aborts, with a `DriverError`, when the connection is found to be gone while a transaction is
   * open on it. From then on every call is rejected without being sent.
   */
  readonly lost: AbortSignal;
  /**
   * The transaction that is open, as those who use the database's client know it: what they write
   * through it commits or rolls back with this session. `undefined` where none is open.
   */
  readonly handle: unknown;
  /** Runs one statement. */
  query(text: string, params?: readonly SqlValue[]): Promise<QueryResult>;
  /** Runs one statement once for each set of parameters, in order. */
  queryEach(
    text: string,
    paramSets: readonly (readonly SqlValue[])[],
  ): Promise<readonly QueryResult[]>;
  /**
   * Runs a whole transaction in one turn of the event loop; only a database in this process can. It
   * is committed when the steps return, and rolled back when they throw. Steps are made anew for each
   * try.
   */
  transact?<T>(makeSteps: () => Steps<T>): Promise<T>;
  /** Opens a transaction that may write. */
  begin(): Promise<void>;
  /**
   * Commits what the open transaction has written, and goes on in another one on the same
   * connection, with the locks of `tryLock`. Absent where `transact` is there.
   */
  checkpoint?(): Promise<void>;
  /** Commits the open transaction. Locks that were taken in it are given back afterwards. */
  commit(): Promise<void>;
  /** Rolls the open transaction back. Locks that were taken in it are given back afterwards. */
  rollback(): Promise<void>;
  /**
   * Takes the lock of a key for this session, without waiting; `undefined` if somebody else has it.
   * One key is one lock in all of the database, whatever it is taken for. On a server it needs an
   * open transaction, whose connection it belongs to. It is held until that transaction is
   * committed or rolled back, or else until `release`, and a lock whose return the server does not
   * confirm ends the connection.
   */
  tryLock(key: string): Promise<LockHolder | undefined>;
  /** Gives the connection back; an open transaction is rolled back, and locks are given back. */
  release(): Promise<void>;
}

/** The session that holds a lock, as the server knows it: statements can ask whether it is theirs. */
export type LockHolder = bigint;

/** A transaction that somebody else has opened, and ends. */
export interface JoinedTransaction {
  /** Runs one statement in it. */
  query(text: string, params: readonly SqlValue[]): Promise<QueryResult>;
}

/**
 * What can stand for a transaction of any client: runs SQL with the placeholders of the database
 * (`$1` on Postgres, else `?`), and returns the rows, or an object that has them as `rows`.
 */
export interface QueryAdapter {
  /** Runs one statement. */
  query(text: string, params: readonly SqlValue[]): unknown;
}

/**
 * A database as Holdfast reaches it: its name, the forms it can hold rows in, its sessions.
 *
 * @typeParam Tx what the database's clients call a transaction
 */
export interface Driver<
  Name extends string = string,
  Forms extends Form = Form,
  Tx = unknown,
> {
  /** The database's name as it stands in messages: `SQLite`. */
  readonly name: Name;
  /** The forms this database can hold rows in. */
  readonly forms: readonly Forms[];
  /** Whether all transactions that write wait for one another, as they do in SQLite. */
  readonly hasOneWriter?: boolean;
  /** How many connections there may be at once; absent where that is no limit, or not known. */
  readonly connections?: number;
  /** How statements are written for this database. */
  readonly dialect: Dialect;
  /** Opens the database. May be called again after `close`. */
  open(): Promise<void>;
  /**
   * Makes sure that locks of keys do what they should for this process until `close`: that no pooler
   * comes between, that no other process is kept out of sight. To be called before the advisory
   * lock form is used.
   *
   * @throws {DriverError} `unusable`, with the reason, if they cannot
   */
  enableLocks(): Promise<void>;
  /** Takes a session from the pool; give it back with `release`. */
  session(): Promise<Session>;
  /**
   * Lets statements run in a transaction that the caller has opened.
   *
   * @throws {TypeError} if it is no transaction that this driver knows; it says what it takes
   */
  join(tx: Tx): JoinedTransaction;
  /**
   * How many statements wait, at this moment, for locks that other sessions of this database hold.
   * Tests on virtual time ask for it, so that what waits for a handler does not keep that handler's
   * clock from moving; where it is absent, it does. It is asked on a connection of its own, for which
   * it may have to wait, and may be out of date by 0.1 s.
   *
   * @throws {DriverError} if the database does not tell, as for want of a privilege
   */
  countLockWaits?(): Promise<number>;
  /**
   * Listens to what is notified under a name, on a connection of its own, which is made again when it
   * is lost; absent where the database has no notifications. `Dialect.notify` sends them.
   *
   * @param channel letters, digits and `_`, 63 at the most
   * @throws {DriverError} `unusable`, with the reason, if notifications do not arrive, as behind a
   * pooler that gives each transaction another connection
   */
  listen?(channel: string, listener: NotificationListener): Promise<Listening>;
  /** What an error thrown by a session means. */
  classify(error: unknown): DriverErrorKind;
  /** Closes every connection that the driver opened. */
  close(): Promise<void>;
}
