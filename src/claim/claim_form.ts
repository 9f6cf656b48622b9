import type { MessageId } from "../driver/dialect.ts";
import type { SqlValue } from "../driver/driver.ts";

/** What a settle does to the row. */
export type Settlement =
  /** Deletes it, or marks it as done. */
  | { readonly kind: "remove" }
  /** Makes it claimable now, its attempt spent. */
  | { readonly kind: "free" }
  /** Makes it claimable now, because the app stops: its attempt is spent where a crash spends one. */
  | { readonly kind: "interrupt" }
  /** Makes it claimable after `delay` milliseconds, its attempt spent; at once where it cannot. */
  | { readonly kind: "delay"; readonly delay: number }
  /** Moves it to another group, where it is due at once, its attempt spent. */
  | { readonly kind: "bury"; readonly group: string };

/** One claimed row, held until it is settled, released or lost. */
export interface Claim {
  readonly id: MessageId;
  /** The number of the delivery, where the table counts attempts. */
  readonly attempt: number | undefined;
  /** The payload as stored. */
  readonly payload: SqlValue;
  /** Aborts when the row is lost, or when `abort` is called. */
  readonly signal: AbortSignal;
  /** Whether the row is still held. */
  readonly held: boolean;
  /** Asks the handler to stop. The row stays held. */
  abort(reason: Error): void;
  /**
   * Carries the settlement out.
   *
   * @throws {LeaseLostError} if the row is no longer held; nothing was changed
   * @throws {AlreadySettledError} if it was settled before
   */
  settle(settlement: Settlement): Promise<void>;
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
  /** Stops what keeps claims alive. Rows still held come back as the form says. */
  close(): Promise<void>;
}
