import type { RowLockStatements } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import type { HeldTransaction, Pool } from "../pool.ts";
import type { ClaimForm } from "./claim_form.ts";
import { claimOneByOne } from "./claim_one_by_one.ts";
import { DelayWarning } from "./delay_warning.ts";
import { RowLockClaim } from "./row_lock_claim.ts";
import { search } from "./search.ts";

/** What the row lock form works with. */
export interface RowLockFormOptions {
  readonly queue: string;
  readonly pool: Pool;
  readonly statements: RowLockStatements;
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

  claim(limit: number): Promise<readonly RowLockClaim[]> {
    return claimOneByOne(limit, () => this.#claimOne());
  }

  /** Claims end with their transactions: nothing keeps them alive. */
  close(): Promise<void> {
    return Promise.resolve();
  }

  async #claimOne(): Promise<RowLockClaim | undefined> {
    const { queue, pool, statements } = this.#options;
    const transaction = await pool.hold();
    try {
      const row = await this.#lockRow(transaction);
      if (row !== undefined) {
        const options = { queue, statements, delayWarning: this.#delayWarning };
        return new RowLockClaim(options, statements.read(row), transaction);
      }
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
    await transaction.rollback();
  }

  /** The guard is taken by a statement of its own, so that the search sees what others did under it. */
  async #lockRow(transaction: HeldTransaction): Promise<SqlRow | undefined> {
    const { guardKey, find } = this.#options.statements;
    if (guardKey !== undefined && !await transaction.tryLock(guardKey)) return undefined;
    const [row] = await transaction.runSteps(() => search(find, 1));
    return row;
  }
}
