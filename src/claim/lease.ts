import { now } from "../clock.ts";
import type { LeaseStatements, LeaseToken, MessageId } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import type { Pool, Transaction } from "../pool.ts";
import type { Runtime } from "../runtime.ts";
import type { ClaimForm } from "./claim_form.ts";
import { LeaseClaim, type LeaseEnding, type LeaseWriter } from "./lease_claim.ts";
import { LeaseKeeper } from "./lease_keeper.ts";
import { SettleBatch } from "./settle_batch.ts";

/** What the lease form works with. */
export interface LeaseFormOptions {
  readonly queue: string;
  readonly pool: Pool;
  readonly statements: LeaseStatements;
  readonly leaseSeconds: number;
  readonly countsAttempts: boolean;
  readonly runtime: Runtime;
}

/**
 * Holds rows by an expiry written in them. A claim commits before the handler runs, so a row comes
 * back when its lease ends, whatever became of its holder; every later write is guarded by the
 * token that the claim wrote.
 */
export class LeaseForm implements ClaimForm, LeaseWriter {
  readonly #options: LeaseFormOptions;
  readonly #keeper: LeaseKeeper;
  readonly #settles: SettleBatch;

  constructor(options: LeaseFormOptions) {
    this.#options = options;
    this.#keeper = new LeaseKeeper(options);
    this.#settles = new SettleBatch(options.pool);
  }

  get queue(): string {
    return this.#options.queue;
  }

  async claim(limit: number): Promise<readonly LeaseClaim[]> {
    const { pool, statements } = this.#options;
    const rows = await pool.transaction(async (transaction) => {
      const ids = await this.#findClaimable(transaction, limit);
      return ids.length === 0 ? [] : await this.#take(transaction, ids);
    });
    const claims = rows.map((row) => new LeaseClaim(statements.read(row), this));
    for (const claim of claims) this.#keeper.keep(claim);
    return claims;
  }

  write(token: LeaseToken, ending: LeaseEnding): Promise<boolean> {
    const { statements } = this.#options;
    const values = { ...token, now: now() };
    switch (ending.kind) {
      case "remove":
        return this.#settles.write(statements.remove, values);
      case "free":
        return this.#settles.write(statements.free, values);
      case "delay":
        return this.#settles.write(statements.delay, { ...values, delay: ending.delay });
      case "release":
        return this.#settles.write(statements.release, values);
    }
  }

  forget(claim: LeaseClaim): void {
    this.#keeper.forget(claim);
  }

  close(): Promise<void> {
    this.#keeper.close();
    return Promise.resolve();
  }

  /** Asks the parts of the claim in turn, until there are enough. */
  async #findClaimable(transaction: Transaction, limit: number): Promise<readonly MessageId[]> {
    const ids: MessageId[] = [];
    for (const part of this.#options.statements.claimable) {
      const rows = await transaction.query(part, { now: now(), limit: limit - ids.length });
      ids.push(...rows.map((row) => row.id as MessageId));
      if (ids.length === limit) break;
    }
    return ids;
  }

  /** The rows in claim order, in which the database need not return them. */
  async #take(
    transaction: Transaction,
    ids: readonly MessageId[],
  ): Promise<readonly SqlRow[]> {
    const { statements, leaseSeconds } = this.#options;
    const rows = await transaction.query(statements.take, { now: now(), leaseSeconds, ids });
    const byId = new Map(rows.map((row) => [row.id, row]));
    return ids.map((id) => byId.get(id)).filter((row) => row !== undefined);
  }
}
