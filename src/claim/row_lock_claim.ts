import type { LockedRow, RowLockStatements } from "../driver/dialect.ts";
import type { QueryResult } from "../driver/driver.ts";
import { DriverError } from "../errors.ts";
import type { HeldTransaction, OpenTransaction } from "../held_transaction.ts";
import type { Pool } from "../pool.ts";
import type { Settlement } from "./claim_form.ts";
import type { DelayWarning } from "./delay_warning.ts";
import type { LockedRows } from "./locked_rows.ts";
import { runBurial } from "./run_burial.ts";
import { SessionClaim } from "./session_claim.ts";

/** What a row lock claim works with. */
export interface RowLockClaimOptions {
  readonly queue: string;
  readonly pool: Pool;
  readonly statements: RowLockStatements;
  /** What statements take for the present. */
  readonly now: () => number;
  readonly delayWarning: DelayWarning;
}

/** A row held by the lock of an open transaction. */
export class RowLockClaim extends SessionClaim {
  readonly #options: RowLockClaimOptions;
  readonly #rows: LockedRows;

  constructor(options: RowLockClaimOptions, row: LockedRow, rows: LockedRows) {
    super(options.queue, row, rows.lost);
    this.#options = options;
    this.#rows = rows;
  }

  override transaction(): Promise<OpenTransaction> {
    return this.#rows.openForHandler();
  }

  /** Its transaction has ended: the row is locked again, unless somebody else has it by now. */
  protected override async takeBack(delay: number, error: string): Promise<void> {
    const { pool, statements, now } = this.#options;
    const transaction = await pool.hold();
    try {
      const { rows } = await transaction.run(statements.lockAgain, { id: this.id, now: now() });
      if (rows.length > 0) await this.#runWrite(transaction, { kind: "delay", delay, error });
    } catch (failure) {
      await transaction.rollback();
      throw failure;
    }
    await transaction.commit();
  }

  protected override async carryOut(settlement: Settlement): Promise<void> {
    const { kind } = settlement;
    if (kind === "interrupt" || kind === "release") return await this.#rows.leave();
    const keeps = settlement.kind === "remove" && settlement.acked;
    await this.#rows.settle((transaction) => this.#write(transaction, settlement), keeps);
  }

  protected override giveBack(): Promise<void> {
    return this.#rows.leave();
  }

  protected override endSession(): Promise<void> {
    return this.#rows.leave();
  }

  async #write(transaction: HeldTransaction, settlement: Settlement): Promise<void> {
    const result = await this.#runWrite(transaction, settlement);
    if (result === undefined || result.rows.length + result.changes === 1) return;
    throw new DriverError(
      "other",
      `Cannot settle message ${this.id} of queue "${this.queue}": its row is not there though it ` +
        `was locked; let nothing else delete it in the handler's transaction`,
    );
  }

  /** `undefined` where nothing need be written: the row is free as soon as the transaction ends. */
  async #runWrite(
    transaction: HeldTransaction,
    settlement: Settlement,
  ): Promise<QueryResult | undefined> {
    const { statements, delayWarning, now } = this.#options;
    const { remove, drop = remove, free, delay, bury } = statements;
    const row = { id: this.id, now: now(), attempt: this.attempt };
    switch (settlement.kind) {
      case "remove":
        return await transaction.run(settlement.acked ? remove : drop, {
          ...row,
          error: settlement.error,
        });
      case "bury": {
        const { error, newId } = settlement;
        const moved = await transaction.runSteps(() => runBurial(bury!, { ...row, error, newId }));
        return { rows: [], changes: moved ? 1 : 0 };
      }
      case "interrupt":
      case "release":
        return undefined;
      case "delay": {
        const { error, delay: length } = settlement;
        if (delay !== undefined) {
          return await transaction.run(delay, { ...row, delay: length, error });
        }
        delayWarning.tell();
        break;
      }
    }
    const { error } = settlement;
    return free === undefined ? undefined : await transaction.run(free, { ...row, error });
  }
}
