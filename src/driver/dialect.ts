import type { SchemaProblem } from "../errors.ts";
import type {
  AdvisoryLockStatements,
  LeaseStatements,
  LeaseTimes,
  RowLockStatements,
} from "./claim_statements.ts";
import type { SqlRow, SqlValue } from "./driver.ts";
import type { FeedStatements, FeedTables } from "./feed_statements.ts";
import type { Form } from "./form.ts";
import type { NextDueStatement } from "./next_due.ts";
import type { PublishStatement, PublishUse } from "./publish_statement.ts";
import type { TimeRole } from "./roles.ts";
import type { Statement } from "./statement.ts";

export type {
  AdvisoryLockStatements,
  Burial,
  Candidate,
  CandidatePart,
  ClaimAtOnce,
  ClaimedRow,
  Failure,
  FindThenTake,
  GuardedStatement,
  GuardedWrite,
  LeaseStatements,
  LeaseTimes,
  LeaseToken,
  LockedRow,
  LockedRowAt,
  OwnFetch,
  RowAt,
  RowContent,
  RowLockStatements,
  SearchPlan,
  SearchValues,
  SessionWrites,
} from "./claim_statements.ts";
export type {
  CountingUpdate,
  EntityKey,
  EventsAfter,
  FeedStatements,
  FeedTables,
  NewEvent,
  NewState,
  PollPlan,
  ScopeKey,
  StoredEvent,
} from "./feed_statements.ts";
export type { NextDue, NextDueStatement } from "./next_due.ts";
export type { NewRow, PublishStatement, PublishUse } from "./publish_statement.ts";

/** A row's id with the database's exact value: integers are `bigint`, everything else text. */
export type MessageId = bigint | string;

/** Whose clock decides what is due: the database's, or the one that is given to each statement. */
export type Clock = "database" | "given";

/** How a payload is stored. */
export type PayloadStorage = "text" | "bytes";

/** A described table, as far as SQL is concerned. */
export interface TableDescription {
  /** `table`, or `schema.table`. */
  readonly table: string;
  /** How a claim holds a row. */
  readonly form: Form;
  /** The column of the id, and who makes its value. */
  readonly id: { readonly column: string; readonly generatedBy: "database" | "service" };
  /** The column of the payload; without it the row itself is the message. */
  readonly payload?: { readonly column: string; readonly storage: PayloadStorage };
  /** The column of the headers, JSON text, if there is one. */
  readonly headers?: string;
  /** The column that counts attempts, if there is one. */
  readonly attempt?: string;
  /** The column of the lease's expiry, if there is one. */
  readonly lockedUntil?: string;
  /** The column that tells the queues of one table apart, if there is one. */
  readonly group?: string;
  /** Whether one row of a group is in work at a time, in order of priority and id. */
  readonly fifo?: boolean;
  /** The column whose smaller values are claimed first, if there is one. */
  readonly priority?: string;
  /** The column of the time before which a row is not claimed, if there is one. */
  readonly retryAfter?: string;
  /** The column that marks a row as done, where it is not deleted. */
  readonly processedAt?: string;
  /** The column of the key whose rows a subscription handles in order, if there is one. */
  readonly partitionKey?: string;
  /** The column of the key of which there is one row at the most, in a group, if there is one. */
  readonly uniqueKey?: string;
  /** The column of the last failure's message, if there is one. */
  readonly lastError?: string;
  /** What the key of a row's advisory lock is made of, in the advisory lock form. */
  readonly lockKey?: readonly LockKeyPart[];
}

/** A part of a key: text as it stands, or the text of a column's value, empty where that is NULL. */
export type LockKeyPart = string | { readonly column: string };

/** The queue that statements are for. */
export interface QueueUse {
  /** Whose clock decides what is due. */
  readonly clock: Clock;
  /** The queue's group, where the table has the role `group`. */
  readonly group?: string;
  /** Where rows go that are given up; absent if nowhere. */
  readonly deadLetter?: DeadLetterUse;
}

/** Where rows go that are given up: to a group of their own table, or to another table. */
export interface DeadLetterUse {
  /** The group that they get, where the table has groups. */
  readonly group?: string;
  /** The other table; absent for the rows' own. */
  readonly table?: TableDescription;
  /** What the database says about the other table. */
  readonly facts?: TableFacts;
}

/** What the database says about a described table, read by the statements of `inspect`. */
export interface TableFacts {
  /** Whether the table exists. */
  readonly exists: boolean;
  /** Declared type by column name as it was described. */
  readonly columns: ReadonlyMap<string, string>;
  /** What is wrong with the table for the use described. */
  readonly problems: readonly SchemaProblem[];
  /** What works, but not for long, or not fast. */
  readonly warnings: readonly SchemaProblem[];
  /** Declared type by name of every column that the table has. */
  readonly all?: ReadonlyMap<string, string>;
  /** The columns, of all that the table has, that a row cannot be inserted without. */
  readonly demanded?: ReadonlySet<string>;
}

/** What is notified, and under which name. */
export interface Notification {
  /** The name under which it is listened to: letters, digits and `_`, 63 at the most. */
  readonly channel: string;
  /** Text of up to 7,999 bytes of UTF-8, without NUL. */
  readonly payload: string;
}

/** How statements are written for one database. Pure: description in, statement out. */
export interface Dialect {
  /** The placeholder of a statement's n-th parameter, from 1. */
  placeholder(number: number): string;
  /** A time, in milliseconds since 1970, as a value of a role's column. */
  encodeTime(table: TableDescription, facts: TableFacts, role: TimeRole, time: number): SqlValue;
  /**
   * A statement that lets `NOW()` and its like tell this time, in milliseconds since 1970, on the
   * connection on which it runs; `undefined` for a time that it cannot take. Absent where there is none.
   */
  setClock?(time: number): string | undefined;
  /**
   * Notifies whoever listens, once the transaction is committed; absent where the database has no
   * notifications.
   */
  readonly notify?: Statement<Notification>;
  /** Ends the connection on which it runs; absent where none is shared with others. */
  readonly endConnection?: string;
  /** One name for each table, however a description writes it. */
  tableKey(table: string): string;
  /** `CREATE TABLE` and `CREATE INDEX` for a described table, one statement each. */
  ddl(table: TableDescription): readonly string[];
  /** Asks the database about a table; its rows go to `facts`. */
  inspect(table: TableDescription): Statement<void>;
  /** What the rows of `inspect` say, and what is wrong. */
  facts(table: TableDescription, rows: readonly SqlRow[]): TableFacts;
  /** The statements of the lease form for one queue. */
  lease(table: TableDescription, facts: TableFacts, use: QueueUse): LeaseStatements;
  /** The statements of the row lock form; absent where the database has no row locks. */
  rowLock?(table: TableDescription, facts: TableFacts, use: QueueUse): RowLockStatements;
  /** The statements of the advisory lock form. */
  advisoryLock(table: TableDescription, facts: TableFacts, use: QueueUse): AdvisoryLockStatements;
  /** Tells when a queue's next row becomes due, in any form. */
  nextDue(table: TableDescription, facts: TableFacts, use: QueueUse): NextDueStatement;
  /** How a row is published. */
  publish(table: TableDescription, facts: TableFacts, use: PublishUse): PublishStatement;
  /** The statements of a feed. */
  feed(tables: FeedTables): FeedStatements;
}

/** When a lease written now ends: at a whole second, so that every database can hold it exactly. */
export function expiryOf({ now, leaseSeconds }: LeaseTimes): number {
  return nextSecond(now) + leaseSeconds * 1000;
}

/** The first whole second after this instant. */
export function nextSecond(now: number): number {
  return (Math.floor(now / 1000) + 1) * 1000;
}
