import type { RowLockStatements } from "../driver/dialect.ts";
import type { Pool } from "../pool.ts";
import type { ClaimForm } from "./claim_form.ts";
import { RowLockClaim } from "./row_lock_claim.ts";

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
  readonly #options: RowLockFormOptions;

  constructor(options: RowLockFormOptions) {
    this.#options = options;
  }

  async claim(limit: number): Promise<readonly RowLockClaim[]> {
    const claims: RowLockClaim[] = [];
    try {
      while (claims.length < limit) {
        const claim = await this.#claimOne();
        if (claim === undefined) break;
        claims.push(claim);
      }
      return claims;
    } catch (error) {
      // What was claimed before is worked on; the error comes again if it is there to stay.
      if (claims.length > 0) return claims;
      throw error;
    }
  }

  /** Claims end with their transactions: nothing keeps them alive. */
  close(): Promise<void> {
    return Promise.resolve();
  }

  async #claimOne(): Promise<RowLockClaim | undefined> {
    const { pool, statements, queue } = this.#options;
    const transaction = await pool.hold();
    try {
      const [row] = await transaction.query(statements.claim, { limit: 1 });
      if (row !== undefined) {
        return new RowLockClaim(queue, statements.read(row), transaction, statements);
      }
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
    await transaction.rollback();
  }
}
