import type { LockedRow, MessageId, RowContent } from "../driver/dialect.ts";
import type { OpenTransaction } from "../held_transaction.ts";
import { AlreadySettledError } from "../errors.ts";
import type { Claim, Settlement } from "./claim_form.ts";

/** A row held by a session: when its connection is gone, the database has given the row back. */
export abstract class SessionClaim implements Claim {
  readonly id: MessageId;
  readonly attempt: number | undefined;
  readonly content: RowContent;
  /** The queue's name, for messages. */
  protected readonly queue: string;
  readonly #lost: AbortSignal;
  readonly #abort = new AbortController();
  #held = true;

  constructor(queue: string, row: LockedRow, lost: AbortSignal) {
    this.id = row.id;
    this.attempt = row.attempt;
    this.content = row.content;
    this.queue = queue;
    this.#lost = lost;
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
    if (!this.#held) {
      throw new AlreadySettledError(
        `Cannot settle message ${this.id} of queue "${this.queue}" again: it is settled; ` +
          `settle each delivery once`,
      );
    }
    this.#held = false;
    if (!this.#lost.aborted) return await this.carryOut(settlement);
    await this.endSession();
    throw this.#lost.reason;
  }

  /** A settle that failed has ended the session, and so has given the row back. */
  letGo(): void {}

  async release(): Promise<void> {
    if (!this.#held) return;
    this.#held = false;
    await this.giveBack();
  }

  abstract transaction(): Promise<OpenTransaction>;

  /** With its connection the row is back already, as it was. */
  async comeBack(delay: number, error: string): Promise<void> {
    if (!this.#lost.aborted) await this.takeBack(delay, error);
  }

  /** Makes the row due later, unless somebody else has it by now: the session has ended. */
  protected abstract takeBack(delay: number, error: string): Promise<void>;

  /** Carries the settlement out, and ends the session whatever comes of it. */
  protected abstract carryOut(settlement: Settlement): Promise<void>;

  /** Undoes the claim, and ends the session. */
  protected abstract giveBack(): Promise<void>;

  /** Ends the session, which gives the row back as it is. */
  protected abstract endSession(): Promise<void>;

  #followConnection(): void {
    const abort = (): void => this.#abort.abort(this.#lost.reason);
    if (this.#lost.aborted) abort();
    else this.#lost.addEventListener("abort", abort, { once: true });
  }
}
