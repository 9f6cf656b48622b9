import type { SchemaProblem } from "../errors.ts";
import type { SqlRow, SqlValue } from "./driver.ts";
import type { Form } from "./form.ts";
import type { Statement } from "./statement.ts";

/** A row's id with the database's exact value: integers are `bigint`, everything else text. */
export type MessageId = bigint | string;

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
  /** Declared type by column name; empty if the table does not exist. */
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

/** The clock and the length of a lease. `now` is used where the host's clock rules. */
export interface LeaseTimes {
  /** The host's clock, in milliseconds since 1970. */
  readonly now: number;
  /** How long the lease is to last. */
  readonly leaseSeconds: number;
}

/** A guarded write: it changes the row only while the token still owns it, and then returns its id. */
export type GuardedStatement<Extra = unknown> = Statement<LeaseToken & Extra>;

/** The statements of the lease form for one table. */
export interface LeaseStatements {
  /** The parts of a claim, to be asked in turn until enough ids have come back, each in order. */
  readonly claimable: readonly Statement<{ readonly now: number; readonly limit: number }>[];
  /** Takes the rows with these ids: writes the expiry, counts the attempt, returns the rows. */
  readonly take: Statement<LeaseTimes & { readonly ids: readonly MessageId[] }>;
  /** Moves the expiry forward, and nothing else. */
  readonly renew: GuardedStatement<LeaseTimes>;
  /** Deletes the row. */
  readonly remove: GuardedStatement;
  /** Makes the row claimable, its attempt spent. */
  readonly free: GuardedStatement<{ readonly now: number }>;
  /** Makes the row claimable after a delay, its attempt spent. */
  readonly delay: GuardedStatement<{ readonly now: number; readonly delay: number }>;
  /** Makes the row claimable, its attempt given back. */
  readonly release: GuardedStatement<{ readonly now: number }>;
  /** Reads a row that `take` returned. */
  read(row: SqlRow): ClaimedRow;
}

/** A row to be published. */
export interface NewRow {
  /** The id that the service has made; `undefined` where the database makes it. */
  readonly id: MessageId | undefined;
  /** The payload as it is stored. */
  readonly payload: SqlValue;
}

/** How statements are written for one database. Pure: description in, statement out. */
export interface Dialect {
  /** `CREATE TABLE` and `CREATE INDEX` for a described table, one statement each. */
  ddl(table: TableDescription): readonly string[];
  /** Asks the database about a table; its rows go to `facts`. */
  inspect(table: TableDescription): Statement<void>;
  /** What the rows of `inspect` say, and what is wrong. */
  facts(table: TableDescription, rows: readonly SqlRow[]): TableFacts;
  /** The statements of the lease form. */
  lease(table: TableDescription, facts: TableFacts): LeaseStatements;
  /** Inserts one row and returns its id as `id`. */
  publish(table: TableDescription, facts: TableFacts): Statement<NewRow>;
}

/** When a lease written now ends: at a whole second, so that every database can hold it exactly. */
export function expiryOf({ now, leaseSeconds }: LeaseTimes): number {
  return nextSecond(now) + leaseSeconds * 1000;
}

/** The first whole second after this instant. */
export function nextSecond(now: number): number {
  return (Math.floor(now / 1000) + 1) * 1000;
}
