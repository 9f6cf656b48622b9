import type { MessageId, RowContent } from "../driver/dialect.ts";
import type { OpenTransaction } from "../held_transaction.ts";

/** What a settle does to the row. */
export type Settlement =
  /** Deletes it, or marks it as done; what the handler has written is kept only if it is `acked`. */
  | { readonly kind: "remove"; readonly acked: boolean; readonly error?: string }
  /** Makes it claimable now, its attempt spent. */
  | { readonly kind: "free"; readonly error?: string }
  /** Makes it claimable now, because the app stops: its attempt is spent where a crash spends one. */
  | { readonly kind: "interrupt" }
  /** Makes it claimable now, its attempt not spent. */
  | { readonly kind: "release" }
  /** Makes it claimable after `delay` milliseconds, its attempt spent; at once where it cannot. */
  | { readonly kind: "delay"; readonly delay: number; readonly error?: string }
  /** Moves it to the dead letter, where it is due at once and its attempts begin anew. */
  | {
    readonly kind: "bury";
    readonly error?: string;
    /** The id that the row gets in another table, where the service makes it. */
    readonly newId?: MessageId;
  };

/** One claimed row, held until it is settled, released or lost. */
export interface Claim {
  readonly id: MessageId;
  /** The number of the delivery, where the table counts attempts. */
  readonly attempt: number | undefined;
  /** What the row holds for its handler. */
  readonly content: RowContent;
  /** Aborts when the row is lost, or when `abort` is called. */
  readonly signal: AbortSignal;
  /** Whether the row is still held. */
  readonly held: boolean;
  /** Asks the handler to stop. The row stays held. */
  abort(reason: Error): void;
  /**
   * The transaction of the handler, opened when it is first asked for: what is written in it is
   * committed together with the end of a message that is acked, and rolled back before any other
   * settlement.
   */
  transaction(): Promise<OpenTransaction>;
  /**
   * Carries the settlement out.
   *
   * @throws {LeaseLostError} if the row is no longer held; nothing was changed
   * @throws {AlreadySettledError} if it was settled before
   */
  settle(settlement: Settlement): Promise<void>;
  /**
   * After a settle that failed: has the row come back after `delay` milliseconds, if it is still this
   * claim's or, where the settle has ended the claim, nobody else's.
   */
  comeBack(delay: number, error: string): Promise<void>;
  /** Does nothing more for the row: it comes back by itself, as it does when the process dies. */
  letGo(): void;
  /** Gives back a row that no handler has seen: claimable again, its attempt not spent. */
  release(): Promise<void>;
}

/** How rows are claimed and held: written once for each form, for all databases. */
export interface ClaimForm {
  /** Whether a claim may keep other rows from being claimed, which are free when it ends. */
  readonly keepsOthersBack: boolean;
  /** Claims up to `limit` rows, in claim order. */
  claim(limit: number): Promise<readonly Claim[]>;
  /** Likewise for rows that are settled together: they share what holds them, where they can. */
  claimBatch(limit: number): Promise<readonly Claim[]>;
  /** Stops what keeps claims alive. Rows still held come back as the form says. */
  close(): Promise<void>;
}
