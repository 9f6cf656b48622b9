import type { SqlRow } from "./driver.ts";
import type { Statement } from "./statement.ts";

/** Asks when rows of a queue become due that are not claimable now. */
export interface NextDueStatement {
  /** Returns one row; `now` is the present, where the given clock rules, in milliseconds since 1970. */
  readonly statement: Statement<{ readonly now: number }>;
  /** Reads that row. */
  read(row: SqlRow): NextDue;
}

/**
 * When a queue's next row becomes due, of those that are not done. A row that is leased becomes due
 * when its lease ends, any other at its due time. The order of a FIFO queue, partition keys and
 * priorities play no part.
 */
export interface NextDue {
  /**
   * Milliseconds until the first row that is not claimable yet becomes so: whole, rounded up, above
   * 0. `undefined` if there is no such row.
   */
  readonly dueIn: number | undefined;
  /**
   * Whether a row is claimable by its columns now: a claim that did not get it found it locked, or
   * behind another.
   */
  readonly isWaiting: boolean;
}
