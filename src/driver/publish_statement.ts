import type { Clock, MessageId } from "./dialect.ts";
import type { SqlRow, SqlValue } from "./driver.ts";
import type { Statement } from "./statement.ts";

/** A row to be published. */
export interface NewRow {
  /** The id that the service has made; `undefined` where the database makes it. */
  readonly id: MessageId | undefined;
  /** The payload as it is stored; of no use where the row itself is the message. */
  readonly payload: SqlValue;
  /** The headers as JSON text, where the table keeps them. */
  readonly headers: string | null;
  /** The partition key, where the table has the role. */
  readonly key: string | null;
  /** The unique key, where the table has the role. */
  readonly uniqueKey: string | null;
  /** The queue's group, where the table has groups. */
  readonly group: string;
  /** The priority, where the table has priorities. */
  readonly priority: bigint;
  /** The present, where the given clock rules; in milliseconds since 1970. */
  readonly now: number;
  /** How long after the present it is due, in milliseconds. */
  readonly delay: number;
  /** When it is due, in milliseconds since 1970, if that is given in place of a delay. */
  readonly at: number | undefined;
  /** The values of other columns, by name. */
  readonly columns: Readonly<Record<string, SqlValue>>;
}

/** How rows are published. */
export interface PublishUse {
  /** Whose clock decides when a row is due. */
  readonly clock: Clock;
  /** The other columns that are written, none of which plays a role. */
  readonly columns: readonly string[];
}

/** How rows are published. */
export interface PublishStatement {
  /**
   * Inserts a row, and returns its id where the database makes it. Where there is a row with its
   * unique key already it inserts and returns nothing, or fails, see `isTaken`.
   */
  readonly insert: Statement<NewRow>;
  /** Inserts so many rows at once, none of which has a unique key; absent where that gains nothing. */
  readonly insertMany?: (count: number) => Statement<readonly NewRow[]>;
  /** Finds the row that has the unique key already; absent without the role `uniqueKey`. */
  readonly find?: Statement<NewRow>;
  /** Whether `insert` failed because there is a row with the unique key already. */
  readonly isTaken?: (error: unknown) => boolean;
  /** Asks for the id that the last `insert` on the same connection made, where it returns none. */
  readonly lastId?: Statement<void>;
  /** Reads the id that `insert` or `find` returned. */
  readId(row: SqlRow): MessageId;
  /** Reads the ids, in order, that `insertMany` returned for so many rows. */
  readIds(rows: readonly SqlRow[], count: number): readonly MessageId[];
}
