import type { Clock, MessageId } from "./driver/dialect.ts";
import type { Outcome } from "./outcome.ts";
import type { AnySubscription } from "./subscription.ts";

/** What happens in a running app, in order, for whoever observes it. */
export type AppEvent =
  | {
    readonly type: "published";
    readonly queue: string;
    readonly id: MessageId;
    readonly message: unknown;
  }
  | { readonly type: "claimed"; readonly queue: string; readonly ids: readonly MessageId[] }
  | { readonly type: "released"; readonly queue: string; readonly id: MessageId }
  | { readonly type: "renewed"; readonly queue: string; readonly ids: readonly MessageId[] }
  | { readonly type: "lost"; readonly queue: string; readonly id: MessageId }
  | { readonly type: "started"; readonly delivery: DeliveryRecord }
  | { readonly type: "settled"; readonly delivery: DeliveryRecord };

/** One delivery as it went. Its last fields are filled in when it ends. */
export interface DeliveryRecord {
  /** The subscription that handled it. */
  readonly subscription: AnySubscription;
  /** The queue's name. */
  readonly queue: string;
  /** The row's id. */
  readonly id: MessageId;
  /** The number of the delivery, where the table counts attempts. */
  readonly attempt: number | undefined;
  /** When the handler started, in milliseconds since 1970. */
  readonly startedAt: number;
  /** The decoded message; `undefined` if it did not decode. */
  message: unknown;
  /** What was decided: by the handler, or `retry()` after an error. */
  outcome: Outcome | undefined;
  /** What went wrong: in the handler, in decoding, or in settling. */
  error: Error | undefined;
  /** Whether the outcome was carried out in the database. */
  settled: boolean;
  /** When the delivery ended, in milliseconds since 1970. */
  endedAt: number | undefined;
}

/** What an app runs in: production's does nothing, a test harness observes and makes faults. */
export interface Runtime {
  /** Told of everything that happens. Must not throw. */
  observe(event: AppEvent): void;
  /** Whose clock decides what is due on databases that have one of their own. */
  readonly clock: Clock;
  /** While true no lease is renewed, as if the database did not answer the keeper. */
  readonly renewalsPaused: boolean;
}

/** The runtime of production. */
export const PRODUCTION: Runtime = {
  observe: () => {},
  clock: "database",
  renewalsPaused: false,
};
