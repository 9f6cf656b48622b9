import type { LockHolder, SqlRow, SqlValue } from "./driver.ts";
import type { MessageId } from "./dialect.ts";
import type { Statement } from "./statement.ts";

/**
 * A search for rows that may be claimed. Each part is one range of an index, so that rows that may
 * not be claimed cost nothing. Parts are asked in turn until enough rows have come back, and each
 * returns them in claim order.
 */
export interface SearchPlan<Part> {
  /** Asked first, and once. */
  readonly first: readonly Part[];
  /** Asked for each priority from the smallest, or once where there are no priorities. */
  readonly each: readonly Part[];
  /**
   * Finds the smallest priority, not below `atLeast`, that a part of `each` may find rows of, as a
   * row with the column `priority`; no row, or NULL, if there is none. Absent where the table has no
   * priorities, or the parts see to them by themselves.
   */
  readonly nextPriority?: Statement<{ readonly atLeast: bigint }>;
}

/** What a part of a search is asked with. */
export interface SearchValues {
  /** The present, where the given clock rules; in milliseconds since 1970. */
  readonly now: number;
  /** How many rows are wanted at the most. */
  readonly limit: number;
  /** The priority whose rows are wanted; 0 where there are no priorities. */
  readonly priority: bigint;
}

/** What a row holds for its handler. */
export interface RowContent {
  /** The payload as stored; `undefined` where the row itself is the message. */
  readonly payload: SqlValue | undefined;
  /** The whole row by column, where the row itself is the message. */
  readonly row?: Readonly<Record<string, unknown>>;
  /** The headers as stored; `undefined` where the table keeps none. */
  readonly headers: SqlValue | undefined;
  /** The partition key; `undefined` where there is none. */
  readonly key: string | undefined;
  /** Whether the role `lastError` tells of a failure. */
  readonly hasFailed: boolean;
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
  /** What it holds for its handler. */
  readonly content: RowContent;
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
  /** Takes, and returns, those of these rows that no lease holds. */
  readonly take: Statement<LeaseTimes & { readonly ids: readonly MessageId[] }>;
}

/** A claim that is made in a short transaction. */
export interface FindThenTake {
  /** Tells it from the other way. */
  readonly kind: "find, then take";
  /** Finds the ids. */
  readonly find: SearchPlan<Statement<SearchValues>>;
  /** Takes the rows with these ids: writes the expiry, counts the attempt. */
  readonly take: Statement<LeaseTimes & { readonly ids: readonly MessageId[] }>;
  /** Reads the rows that were taken, where `take` cannot return them. */
  readonly fetch?: Statement<{ readonly ids: readonly MessageId[] }>;
}

/** The statements of the lease form for one queue. */
export interface LeaseStatements {
  /** How rows are claimed. */
  readonly claim: ClaimAtOnce | FindThenTake;
  /**
   * The key of the lock without which a FIFO queue must not be claimed; absent for other queues, and
   * where the database lets nobody else write in the meantime.
   */
  readonly guardKey?: string;
  /** Moves the expiry to `until`, in milliseconds since 1970, and nothing else. */
  readonly renew: GuardedWrite<{ readonly until: number }>;
  /** Deletes the row, or marks it as done. */
  readonly remove: GuardedWrite<{ readonly now: number } & Failure>;
  /** Likewise for a message that is dropped, if that is done otherwise. */
  readonly drop?: GuardedWrite<{ readonly now: number } & Failure>;
  /** Reads claimed rows anew, if the service has a statement for it. */
  readonly fetch?: OwnFetch;
  /** Makes the row claimable, its attempt spent. */
  readonly free: GuardedWrite<{ readonly now: number } & Failure>;
  /** Makes the row claimable after a delay in milliseconds, its attempt spent. */
  readonly delay: GuardedWrite<{ readonly now: number; readonly delay: number } & Failure>;
  /** Makes the row claimable, its attempt given back. */
  readonly release: GuardedWrite<{ readonly now: number }>;
  /** Moves the row to the dead letter, see `Burial`; absent where there is none. */
  readonly bury?: Burial<LeaseToken & { readonly now: number }>;
  /** Looks whether the row is there, whoever holds it. */
  readonly look: Statement<{ readonly id: MessageId }>;
  /** Reads a row that a claim returned. */
  read(row: SqlRow): ClaimedRow;
  /** Reads the id of a row that was found or written. */
  readId(row: SqlRow): MessageId;
}

/** The statements of the row lock form for one queue. All run in one transaction. */
export interface RowLockStatements extends SessionWrites<RowAt> {
  /** Locks rows that nobody has locked, and returns them. */
  readonly find: SearchPlan<Statement<SearchValues>>;
  /** As in the lease form; the lock is held until the transaction has ended. */
  readonly guardKey?: string;
  /** Locks one row that is claimable, and returns its id, unless somebody else has locked it. */
  readonly lockAgain: Statement<RowAt>;
  /** Reads a row that `find` returned. */
  read(row: SqlRow): LockedRow;
}

/** The writes that end a claim which a session holds. Values may be a `RowAt` and more. */
export interface SessionWrites<At extends RowAt> {
  /** Deletes the row, or marks it as done. */
  readonly remove: Statement<At & Failure>;
  /** Likewise for a message that is dropped, if that is done otherwise. */
  readonly drop?: Statement<At & Failure>;
  /** Reads claimed rows anew, if the service has a statement for it. */
  readonly fetch?: OwnFetch;
  /** Spends the attempt, where that is not done yet; absent where nothing need be written. */
  readonly free?: Statement<At & Failure>;
  /** Likewise, and makes the row due after a delay in milliseconds; absent without `retryAfter`. */
  readonly delay?: Statement<At & Failure & { readonly delay: number }>;
  /** Gives back the attempt that the claim has spent; absent where it has spent none. */
  readonly giveBack?: Statement<At>;
  /** Moves the row to the dead letter, see `Burial`; absent where there is none. */
  readonly bury?: Burial<At>;
}

/** How a claimed row is read anew by a statement of the service's own. */
export interface OwnFetch {
  /** Reads the row. */
  readonly statement: Statement<{ readonly id: MessageId; readonly now: number }>;
  /** Its columns under the names that built-in statements give them. */
  alias(row: SqlRow): SqlRow;
}

/** What is written to the role `lastError`; it stays as it is where there is nothing. */
export interface Failure {
  /** Why the message was not handled. */
  readonly error?: string | undefined;
}

/**
 * Moves a row to the dead letter, due at once and with its attempts ahead of it: statements to be run
 * in order in one transaction. Where the first finds nothing the row is not the caller's any more;
 * each of the others then writes one row.
 */
export type Burial<At> = readonly Statement<
  At & Failure & {
    /** The id that the row gets in another table, where the service makes it. */
    readonly newId?: MessageId;
  }
>[];

/** A row, and what the given clock says where it rules; in milliseconds since 1970. */
export interface RowAt {
  /** The row's id. */
  readonly id: MessageId;
  /** The present. */
  readonly now: number;
}

/** A row as it was locked. */
export interface LockedRow {
  /** The row's id. */
  readonly id: MessageId;
  /** The number of the delivery, where the table counts attempts. */
  readonly attempt: number | undefined;
  /** What it holds for its handler. */
  readonly content: RowContent;
}

/** The statements of the advisory lock form for one queue. */
export interface AdvisoryLockStatements extends SessionWrites<LockedRowAt> {
  /** Finds rows that may be claimed, page by page, whether their keys are locked or not. */
  readonly candidates: SearchPlan<CandidatePart>;
  /**
   * Counts the attempt of a row that is still claimable and still has this key, and reads the row,
   * while the lock of the key is held: statements to be run in order in one transaction. Where one
   * finds nothing the row is not claimable any more; the last returns the row.
   */
  readonly take: readonly Statement<LockedRowAt & { readonly key: string }>[];
  /** A lock of the service's own that is taken too, and given back. */
  readonly ownLock?: {
    readonly lock: Statement<{ readonly key: string }>;
    readonly unlock: Statement<{ readonly key: string }>;
  };
  /** Reads a row of `candidates`. */
  readCandidate(row: SqlRow): Candidate;
  /** Reads the row that `take` returned. */
  read(row: SqlRow): LockedRow;
}

/** A part of the search for candidates, and how it goes on after a page. */
export interface CandidatePart {
  /** The first page. */
  readonly first: Statement<SearchValues>;
  /** The page after this candidate, whatever has become of its row. */
  readonly next: Statement<SearchValues & { readonly after: Candidate }>;
}

/** A row that may be claimed once the lock of its key is taken. */
export interface Candidate {
  /** The row's id. */
  readonly id: MessageId;
  /** The key of its lock. */
  readonly key: string;
  /** When it is due, as the next page's search takes it; NULL where there is no such time. */
  readonly due: SqlValue;
  /** Whether somebody was seen to hold the key. A hint: only taking the lock tells. */
  readonly held: boolean;
}

/** A row whose lock is held. Every write of it is guarded by both of these. */
export interface LockedRowAt extends RowAt {
  /** The session that holds the lock, as the server knows it. */
  readonly holder: LockHolder;
  /** The number of the delivery, where the table counts attempts; of no use to `take`. */
  readonly attempt: number | undefined;
}
