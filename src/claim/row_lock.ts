import type { LockedRow, RowLockStatements } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import type { HeldTransaction } from "../held_transaction.ts";
import type { Pool } from "../pool.ts";
import type { ClaimForm } from "./claim_form.ts";
import { fetchOwn } from "./fetch_own.ts";
import { claimOneByOne } from "./claim_one_by_one.ts";
import { DelayWarning } from "./delay_warning.ts";
import { LockedRows } from "./locked_rows.ts";
import { RowLockClaim } from "./row_lock_claim.ts";
import { search } from "./search.ts";

/** What the row lock form works with. */
export interface RowLockFormOptions {
  readonly queue: string;
  readonly pool: Pool;
  readonly statements: RowLockStatements;
  /** What statements take for the present. */
  readonly now: () => number;
}

/**
 * Holds each row by the lock of a transaction that stays open while its handler works, on a
 * connection of its own: when the process or the connection dies, the database gives the row back.
 */
export class RowLockForm implements ClaimForm {
  readonly keepsOthersBack = false;
  readonly #options: RowLockFormOptions;
  readonly #delayWarning: DelayWarning;

  constructor(options: RowLockFormOptions) {
    this.#options = options;
    this.#delayWarning = new DelayWarning(options.queue);
  }

  async claim(limit: number): Promise<readonly RowLockClaim[]> {
    return (await claimOneByOne(limit, () => this.#claimTogether(1))).flat();
  }

  /** The rows are locked by one transaction, and settled in it. */
  async claimBatch(limit: number): Promise<readonly RowLockClaim[]> {
    return await this.#claimTogether(limit) ?? [];
  }

  /** Claims end with their transactions: nothing keeps them alive. */
  close(): Promise<void> {
    return Promise.resolve();
  }

  async #claimTogether(limit: number): Promise<readonly RowLockClaim[] | undefined> {
    const { queue, pool, statements, now } = this.#options;
    const transaction = await pool.hold();
    try {
      const found = await this.#lockRows(transaction, limit);
      if (found.length > 0) {
        const options = { queue, pool, statements, now, delayWarning: this.#delayWarning };
        const once = onlyOnce(found.map((row) => statements.read(row)));
        const rows = new LockedRows(transaction, once.length);
        const read = await fetchOwn(once, statements, transaction, now);
        return read.map((row) => new RowLockClaim(options, row, rows));
      }
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
    await transaction.rollback();
  }

  /** The guard is taken by a statement of its own, so that the search sees what others did under it. */
  async #lockRows(transaction: HeldTransaction, limit: number): Promise<readonly SqlRow[]> {
    const { statements: { guardKey, find }, now } = this.#options;
    if (guardKey !== undefined && !await transaction.tryLock(guardKey)) return [];
    return await transaction.runSteps(() => search(find, limit, now));
  }
}

/** A statement of the service's own may find a row twice. */
function onlyOnce(rows: readonly LockedRow[]): readonly LockedRow[] {
  return [...new Map(rows.map((row) => [row.id, row])).values()];
}
