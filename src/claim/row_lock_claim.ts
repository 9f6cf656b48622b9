import type { LockedRow, MessageId, RowLockStatements } from "../driver/dialect.ts";
import type { SqlValue } from "../driver/driver.ts";
import { AlreadySettledError, DriverError } from "../errors.ts";
import type { HeldTransaction } from "../pool.ts";
import type { Claim, Settlement } from "./claim_form.ts";

/** A row held by the lock of an open transaction. */
export class RowLockClaim implements Claim {
  readonly id: MessageId;
  readonly attempt: number | undefined;
  readonly payload: SqlValue;
  readonly #queue: string;
  readonly #transaction: HeldTransaction;
  readonly #statements: RowLockStatements;
  readonly #abort = new AbortController();
  #held = true;

  constructor(
    queue: string,
    row: LockedRow,
    transaction: HeldTransaction,
    statements: RowLockStatements,
  ) {
    this.id = row.id;
    this.attempt = row.attempt;
    this.payload = row.payload;
    this.#queue = queue;
    this.#transaction = transaction;
    this.#statements = statements;
    this.#followConnection();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get held(): boolean {
    return this.#held;
  }

  abort(reason: Error): void {
    this.#abort.abort(reason);
  }

  async settle(settlement: Settlement): Promise<void> {
    this.#beginEnding();
    if (this.#transaction.lost.aborted) {
      await this.#transaction.rollback();
      throw this.#transaction.lost.reason;
    }
    if (settlement.kind === "interrupt") return await this.#transaction.rollback();
    try {
      await this.#write(settlement);
    } catch (error) {
      await this.#transaction.rollback();
      throw error;
    }
    await this.#transaction.commit();
  }

  /** A settle that failed has rolled back, and so has given the row back. */
  letGo(): void {}

  async release(): Promise<void> {
    if (!this.#held) return;
    this.#held = false;
    await this.#transaction.rollback();
  }

  #beginEnding(): void {
    if (!this.#held) {
      throw new AlreadySettledError(
        `Cannot settle message ${this.id} of queue "${this.#queue}" again: it is settled; ` +
          `settle each delivery once`,
      );
    }
    this.#held = false;
  }

  /** The row cannot be delayed: it is free as soon as the transaction ends. */
  async #write({ kind }: Settlement): Promise<void> {
    const { remove, spend } = this.#statements;
    const write = kind === "remove" ? remove : spend;
    if (write === undefined) return;
    const { rows, changes } = await this.#transaction.run(write, { id: this.id });
    if (rows.length + changes === 1) return;
    throw new DriverError(
      "other",
      `Cannot settle message ${this.id} of queue "${this.#queue}": its row is not there though it ` +
        `was locked; let nothing else delete it in the handler's transaction`,
    );
  }

  /** The database has given the row back when the connection is gone. */
  #followConnection(): void {
    const { lost } = this.#transaction;
    const abort = (): void => this.#abort.abort(lost.reason);
    if (lost.aborted) abort();
    else lost.addEventListener("abort", abort, { once: true });
  }
}
