import type { SchemaProblem } from "../errors.ts";
import type { SqlRow, SqlValue } from "./driver.ts";
import type { Form } from "./form.ts";
import type { Statement } from "./statement.ts";

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
  /** The column of the payload. */
  readonly payload: { readonly column: string; readonly storage: PayloadStorage };
  /** The column that counts attempts, if there is one. */
  readonly attempt?: string;
  /** The column of the lease's expiry, if there is one. */
  readonly lockedUntil?: string;
}

/** What the database says about a described table, read by the statements of `inspect`. */
export interface TableFacts {
  /** Whether the table exists. */
  readonly exists: boolean;
  /** Declared type by column name as it was described. */
  readonly columns: ReadonlyMap<string, string>;
  /** What is wrong with the table for the use described. */
  readonly problems: readonly SchemaProblem[];
}

/** A row as claimed. */
export interface ClaimedRow {
  /** The row's id. */
  readonly id: MessageId;
  /** What the attempt column holds while the row is claimed: one more than the delivery's number. */
  readonly attempt: number | undefined;
  /** When the lease ends, in milliseconds since 1970. */
  readonly expiry: number;
  /** What the database's clock said, where it rules; in milliseconds since 1970. */
  readonly now?: number;
  /** The payload as stored. */
  readonly payload: SqlValue;
}

/** What proves that a holder still owns its row. */
export interface LeaseToken {
  /** The row's id. */
  readonly id: MessageId;
  /** What the claim wrote to the attempt column, where there is one. */
  readonly attempt: number | undefined;
  /** The expiry known to be in the row, in milliseconds since 1970. */
  readonly expiry: number;
  /** The latest expiry this holder wrote or tried to write. */
  readonly latestExpiry: number;
}

/** The clock and the length of a lease. */
export interface LeaseTimes {
  /**
   * The present, in milliseconds since 1970: exact where the host's clock rules, else what is known
   * of the database's, which the statements of a claim then ask themselves.
   */
  readonly now: number;
  /** How long the lease is to last. */
  readonly leaseSeconds: number;
}

/** A write under guard: it changes the row only while the token still owns it. */
export type GuardedStatement<Extra = unknown> = Statement<LeaseToken & Extra>;

/** A guarded write, for one row and, where the database can, for many at once. */
export interface GuardedWrite<Extra = unknown> {
  /** Writes one row. It returns the row's id or, where nothing can be returned, counts it. */
  readonly one: GuardedStatement<Extra>;
  /** Writes many rows, each under its own token, and returns or counts likewise. */
  readonly many?: Statement<readonly (LeaseToken & Extra)[]>;
}

/** A claim that one statement makes: it returns the rows that it has taken. */
export interface ClaimAtOnce {
  /** Tells it from the other way. */
  readonly kind: "at once";
  /** Takes up to `limit` rows and returns them in claim order. */
  readonly claim: Statement<LeaseTimes & { readonly limit: number }>;
}

/** A claim that is made in a short transaction. */
export interface FindThenTake {
  /** Tells it from the other way. */
  readonly kind: "find, then take";
  /** The parts of the search, asked in turn until enough ids have come back, each in order. */
  readonly find: readonly Statement<{ readonly now: number; readonly limit: number }>[];
  /** Takes the rows with these ids: writes the expiry, counts the attempt. */
  readonly take: Statement<LeaseTimes & { readonly ids: readonly MessageId[] }>;
  /** Reads the rows that were taken, where `take` cannot return them. */
  readonly fetch?: Statement<{ readonly ids: readonly MessageId[] }>;
}

/** The statements of the lease form for one table. */
export interface LeaseStatements {
  /** How rows are claimed. */
  readonly claim: ClaimAtOnce | FindThenTake;
  /** Moves the expiry to `until`, in milliseconds since 1970, and nothing else. */
  readonly renew: GuardedWrite<{ readonly until: number }>;
  /** Deletes the row. */
  readonly remove: GuardedWrite;
  /** Makes the row claimable, its attempt spent. */
  readonly free: GuardedWrite<{ readonly now: number }>;
  /** Makes the row claimable after a delay in milliseconds, its attempt spent. */
  readonly delay: GuardedWrite<{ readonly now: number; readonly delay: number }>;
  /** Makes the row claimable, its attempt given back. */
  readonly release: GuardedWrite<{ readonly now: number }>;
  /** Looks whether the row is there, whoever holds it. */
  readonly look: Statement<{ readonly id: MessageId }>;
  /** Reads a row that a claim returned. */
  read(row: SqlRow): ClaimedRow;
  /** Reads the id of a row that was found or written. */
  readId(row: SqlRow): MessageId;
}

/** The statements of the row lock form for one table. All run in one transaction. */
export interface RowLockStatements {
  /** Locks up to `limit` rows that nobody has locked, and returns them in claim order. */
  readonly claim: Statement<{ readonly limit: number }>;
  /** Deletes the row. */
  readonly remove: Statement<{ readonly id: MessageId }>;
  /** Counts an attempt, where the table counts them. */
  readonly spend?: Statement<{ readonly id: MessageId }>;
  /** Reads a row that `claim` returned. */
  read(row: SqlRow): LockedRow;
}

/** A row as it was locked. */
export interface LockedRow {
  /** The row's id. */
  readonly id: MessageId;
  /** The number of the delivery, where the table counts attempts. */
  readonly attempt: number | undefined;
  /** The payload as stored. */
  readonly payload: SqlValue;
}

/** A row to be published. */
export interface NewRow {
  /** The id that the service has made; `undefined` where the database makes it. */
  readonly id: MessageId | undefined;
  /** The payload as it is stored. */
  readonly payload: SqlValue;
}

/** How a row is published. */
export interface PublishStatement {
  /** Inserts the row, and returns its id where the database makes it. */
  readonly insert: Statement<NewRow>;
  /** Reads the id that it returned. */
  readId(row: SqlRow): MessageId;
}

/** How statements are written for one database. Pure: description in, statement out. */
export interface Dialect {
  /** One name for each table, however a description writes it. */
  tableKey(table: string): string;
  /** `CREATE TABLE` and `CREATE INDEX` for a described table, one statement each. */
  ddl(table: TableDescription): readonly string[];
  /** Asks the database about a table; its rows go to `facts`. */
  inspect(table: TableDescription): Statement<void>;
  /** What the rows of `inspect` say, and what is wrong. */
  facts(table: TableDescription, rows: readonly SqlRow[]): TableFacts;
  /** The statements of the lease form, by the clock that is to rule. */
  lease(table: TableDescription, facts: TableFacts, clock: Clock): LeaseStatements;
  /** The statements of the row lock form; absent where the database has no row locks. */
  rowLock?(table: TableDescription, facts: TableFacts): RowLockStatements;
  /** How a row is published. */
  publish(table: TableDescription, facts: TableFacts): PublishStatement;
}

/** When a lease written now ends: at a whole second, so that every database can hold it exactly. */
export function expiryOf({ now, leaseSeconds }: LeaseTimes): number {
  return nextSecond(now) + leaseSeconds * 1000;
}

/** The first whole second after this instant. */
export function nextSecond(now: number): number {
  return (Math.floor(now / 1000) + 1) * 1000;
}
