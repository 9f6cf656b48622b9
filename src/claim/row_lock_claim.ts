import { now } from "../clock.ts";
import type { LockedRow, RowLockStatements } from "../driver/dialect.ts";
import type { QueryResult } from "../driver/driver.ts";
import { DriverError } from "../errors.ts";
import type { HeldTransaction } from "../pool.ts";
import type { Settlement } from "./claim_form.ts";
import type { DelayWarning } from "./delay_warning.ts";
import { SessionClaim } from "./session_claim.ts";

/** What a row lock claim works with. */
export interface RowLockClaimOptions {
  readonly queue: string;
  readonly statements: RowLockStatements;
  readonly delayWarning: DelayWarning;
}

/** A row held by the lock of an open transaction. */
export class RowLockClaim extends SessionClaim {
  readonly #options: RowLockClaimOptions;
  readonly #transaction: HeldTransaction;

  constructor(options: RowLockClaimOptions, row: LockedRow, transaction: HeldTransaction) {
    super(options.queue, row, transaction.lost);
    this.#options = options;
    this.#transaction = transaction;
  }

  protected override async carryOut(settlement: Settlement): Promise<void> {
    if (settlement.kind === "interrupt") return await this.endSession();
    try {
      await this.#write(settlement);
    } catch (error) {
      await this.endSession();
      throw error;
    }
    await this.#transaction.commit();
  }

  protected override giveBack(): Promise<void> {
    return this.endSession();
  }

  protected override endSession(): Promise<void> {
    return this.#transaction.rollback();
  }

  async #write(settlement: Settlement): Promise<void> {
    const result = await this.#runWrite(settlement);
    if (result === undefined || result.rows.length + result.changes === 1) return;
    throw new DriverError(
      "other",
      `Cannot settle message ${this.id} of queue "${this.queue}": its row is not there though it ` +
        `was locked; let nothing else delete it in the handler's transaction`,
    );
  }

  /** `undefined` where nothing need be written: the row is free as soon as the transaction ends. */
  async #runWrite(settlement: Settlement): Promise<QueryResult | undefined> {
    const { statements: { remove, spend, delay, bury }, delayWarning } = this.#options;
    const row = { id: this.id, now: now() };
    switch (settlement.kind) {
      case "remove":
        return await this.#transaction.run(remove, row);
      case "bury":
        return await this.#transaction.run(bury!, { ...row, group: settlement.group });
      case "delay":
        if (delay !== undefined) {
          return await this.#transaction.run(delay, { ...row, delay: settlement.delay });
        }
        delayWarning.tell();
    }
    return spend === undefined ? undefined : await this.#transaction.run(spend, row);
  }
}
