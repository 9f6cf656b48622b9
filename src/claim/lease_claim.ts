import { backoff } from "../backoff.ts";
import { sleep } from "../clock.ts";
import type { ClaimedRow, LeaseToken, MessageId, RowContent } from "../driver/dialect.ts";
import {
  AlreadySettledError,
  DriverError,
  type DriverErrorKind,
  LeaseLostError,
} from "../errors.ts";
import type { HeldTransaction } from "../held_transaction.ts";
import type { Claim, Settlement } from "./claim_form.ts";

/** What a lease claim asks of its form. */
export interface LeaseWriter {
  /** The queue's name, for messages. */
  readonly queue: string;
  /** The present, by the clock that decides what is due. */
  readonly now: number;
  /** Whether the table counts attempts, and a token so tells its holder from any later one. */
  readonly countsAttempts: boolean;
  /** Aborts when the form is closed: then nothing is tried again. */
  readonly closed: AbortSignal;
  /** Writes an ending under the token's guard; resolves to whether the row was changed. */
  write(token: LeaseToken, ending: Settlement): Promise<boolean>;
  /** Opens a transaction for a handler. */
  begin(claim: LeaseClaim): Promise<HeldTransaction>;
  /** Writes that the message is done, in the handler's transaction; whether the row was changed. */
  removeIn(transaction: HeldTransaction, token: LeaseToken): Promise<boolean>;
  /** Whether the row is gone. */
  isGone(id: MessageId): Promise<boolean>;
  /** Nothing of this claim is to be renewed any more. */
  forget(claim: LeaseClaim): void;
}

/** A row held by an expiry that is written in it. A keeper renews it while it is held. */
export class LeaseClaim implements Claim {
  readonly id: MessageId;
  readonly attempt: number | undefined;
  readonly content: RowContent;
  readonly #row: ClaimedRow;
  readonly #writer: LeaseWriter;
  readonly #abort = new AbortController();
  #state: "held" | "settling" | "settled" | "lost" = "held";
  #lostBy: LeaseLostError | undefined;
  #transaction: Promise<HeldTransaction> | undefined;
  #expiry: number;
  #latestExpiry: number;

  constructor(row: ClaimedRow, writer: LeaseWriter) {
    this.id = row.id;
    // The claim has counted the delivery that it begins.
    this.attempt = row.attempt === undefined ? undefined : row.attempt - 1;
    this.content = row.content;
    this.#row = row;
    this.#writer = writer;
    this.#expiry = row.expiry;
    this.#latestExpiry = row.expiry;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get held(): boolean {
    return this.#state === "held";
  }

  /** When the lease ends, as far as is certain, in milliseconds since 1970. */
  get expiry(): number {
    return this.#expiry;
  }

  /** What proves that this claim still owns its row. */
  get token(): LeaseToken {
    return {
      id: this.id,
      attempt: this.#row.attempt,
      expiry: this.#expiry,
      latestExpiry: this.#latestExpiry,
    };
  }

  /**
   * A renewal to this expiry is to be written: from now on it may be what the row holds. Without
   * attempts a token is two expiries at the most, so one in doubt is repeated until it is certain.
   *
   * @returns the expiry to write
   */
  renewing(expiry: number): number {
    const inDoubt = this.#latestExpiry !== this.#expiry;
    if (this.#writer.countsAttempts || !inDoubt) {
      this.#latestExpiry = Math.max(this.#latestExpiry, expiry);
    }
    return this.#latestExpiry;
  }

  /** The row is known to hold this expiry. */
  renewed(expiry: number): void {
    this.#expiry = expiry;
    this.#latestExpiry = Math.max(this.#latestExpiry, expiry);
  }

  /** The row is no longer this claim's. A claim that is settling or settled knows better. */
  lose(reason: string, cause?: unknown): void {
    if (this.#state !== "held") return;
    this.#lose(this.#lost(reason, cause));
  }

  abort(reason: Error): void {
    this.#abort.abort(reason);
  }

  transaction(): Promise<HeldTransaction> {
    return this.#transaction ??= this.#writer.begin(this);
  }

  async settle(settlement: Settlement): Promise<void> {
    await this.#beginEnding();
    const transaction = await this.#transaction?.catch(() => undefined);
    this.#transaction = undefined;
    if (transaction === undefined) return await this.#end(settlement);
    if (settlement.kind === "remove" && settlement.acked) return await this.#commit(transaction);
    await transaction.rollback();
    await this.#end(settlement);
  }

  async comeBack(delay: number, error: string): Promise<void> {
    if (this.#state === "held") await this.settle({ kind: "delay", delay, error });
    else this.letGo();
  }

  letGo(): void {
    this.#writer.forget(this);
  }

  async release(): Promise<void> {
    if (this.#state !== "held") return;
    this.#state = "settling";
    try {
      // Not repeated if its result is unknown: the repeat could free the row of another holder.
      await this.#writer.write(this.token, { kind: "release" });
    } finally {
      this.#state = "settled";
      this.#writer.forget(this);
    }
  }

  async #beginEnding(): Promise<void> {
    if (this.#lostBy !== undefined) {
      await this.#rollBack();
      throw this.#lostBy;
    }
    if (this.#state !== "held") {
      throw new AlreadySettledError(
        `Cannot settle message ${this.id} of queue "${this.#writer.queue}" again: ` +
          `it is ${this.#state}; settle each delivery once`,
      );
    }
    this.#state = "settling";
  }

  /** What the handler has written and the end of its message are committed together, or neither is. */
  async #commit(transaction: HeldTransaction): Promise<void> {
    let owned: boolean;
    try {
      owned = await this.#writer.removeIn(transaction, this.token);
      if (owned) await transaction.commit();
    } catch (error) {
      await transaction.rollback();
      // A commit whose answer was lost may have been carried out.
      if (isDisconnected(error) && await this.#wasRemoved()) return this.#settled();
      return this.#fail(error);
    }
    if (owned) return this.#settled();
    await transaction.rollback();
    this.#fail(this.#lost("its row is gone or another claim holds it"));
  }

  /** Whether the row is gone, as far as the database answers before the lease ends. */
  async #wasRemoved(): Promise<boolean> {
    for (let tries = 1; this.#writer.now < this.#expiry; tries++) {
      try {
        return await this.#writer.isGone(this.id);
      } catch (error) {
        if (!mayPass(error) || this.#writer.closed.aborted) return false;
      }
      await sleep(backoff(tries, BETWEEN_SETTLES), this.#writer.closed);
    }
    return false;
  }

  async #rollBack(): Promise<void> {
    const transaction = await this.#transaction?.catch(() => undefined);
    this.#transaction = undefined;
    await transaction?.rollback();
  }

  /** Tries until the database answers or the lease ends. */
  async #end(settlement: Settlement): Promise<void> {
    let inDoubt = false;
    for (let tries = 1;; tries++) {
      if (this.#cannotBeTold) {
        return this.#fail(this.#lost("its lease ended while a renewal was in doubt"));
      }
      try {
        if (await this.#writer.write(this.token, settlement)) return this.#settled();
        // The write whose reply was lost may have done it: only the holder ends a row that it holds.
        if (inDoubt && endsRow(settlement) && await this.#writer.isGone(this.id)) {
          return this.#settled();
        }
        return this.#fail(this.#lost("its row is gone or another claim holds it"));
      } catch (error) {
        if (!mayPass(error) || this.#writer.closed.aborted) return this.#fail(error);
        inDoubt = true;
        if (this.#writer.now >= this.#expiry) {
          return this.#fail(this.#lost("its lease ended before the database answered", error));
        }
      }
      await sleep(backoff(tries, BETWEEN_SETTLES), this.#writer.closed);
    }
  }

  /**
   * Without attempts, once the lease has ended: the expiry of a renewal whose result is unknown may
   * by chance be what another claim has written.
   */
  get #cannotBeTold(): boolean {
    return !this.#writer.countsAttempts && this.#latestExpiry !== this.#expiry &&
      this.#writer.now >= this.#expiry;
  }

  #settled(): void {
    this.#state = "settled";
    this.#writer.forget(this);
  }

  /** A row that could not be written is still held: something else may be tried with it. */
  #fail(error: unknown): never {
    if (error instanceof LeaseLostError) this.#lose(error);
    else this.#state = "held";
    throw error;
  }

  #lose(error: LeaseLostError): void {
    this.#state = "lost";
    this.#lostBy = error;
    this.#writer.forget(this);
    this.#abort.abort(error);
    // The handler may go on for long: nothing that it writes is to be kept, or to lock what others need.
    this.#rollBack().catch(() => {});
  }

  #lost(reason: string, cause?: unknown): LeaseLostError {
    const attempt = this.attempt === undefined ? "" : ` (attempt ${this.attempt})`;
    const because = cause instanceof Error ? ` (${cause.message})` : "";
    return new LeaseLostError(
      `Cannot settle message ${this.id}${attempt} of queue "${this.#writer.queue}": ` +
        `${reason}${because}; nothing was changed, and the message is delivered again unless a later holder settles it`,
      { cause },
    );
  }
}

function endsRow({ kind }: Settlement): boolean {
  return kind === "remove" || kind === "bury";
}

function isDisconnected(error: unknown): boolean {
  return error instanceof DriverError && error.kind === "disconnected";
}

/** Whether the same statement may succeed when it is tried again. */
function mayPass(error: unknown): boolean {
  return error instanceof DriverError && PASSING.includes(error.kind);
}

const PASSING: readonly DriverErrorKind[] = ["conflict", "disconnected"];
const BETWEEN_SETTLES = { first: 50, cap: 1_000 };
