import type { Clock, MessageId } from "./driver/dialect.ts";
import type { Driver } from "./driver/driver.ts";
import type { IdleSleep } from "./idle_sleep.ts";
import type { Outcome } from "./outcome.ts";
import type { AnySubscription } from "./subscription.ts";

/** What happens in a running app, in order, for whoever observes it. */
export type AppEvent =
  | { readonly type: "published"; readonly publish: PublishRecord }
  | { readonly type: "claimed"; readonly queue: string; readonly ids: readonly MessageId[] }
  | { readonly type: "released"; readonly queue: string; readonly id: MessageId }
  | { readonly type: "renewed"; readonly queue: string; readonly ids: readonly MessageId[] }
  | { readonly type: "lost"; readonly queue: string; readonly id: MessageId }
  | { readonly type: "started"; readonly delivery: DeliveryRecord }
  | { readonly type: "settled"; readonly delivery: DeliveryRecord }
  /** What a handler asked for was refused: a second settle, a publish after its end, or by another way. */
  | {
    readonly type: "refused";
    readonly queue: string;
    readonly id: MessageId;
    readonly error: Error;
  };

/** One message as it was published. */
export interface PublishRecord {
  /** The queue's name. */
  readonly queue: string;
  /** The row's id. */
  readonly id: MessageId;
  /** The message, as it was given. */
  readonly message: unknown;
  /**
   * What has become of the transaction it was inserted in: `"unknown"` where that was opened by a client
   * of the caller's own, whose end is not told.
   */
  fate: "open" | "committed" | "rolled back" | "unknown";
  /**
   * Whether a transactional handler has published it outside its transaction: what becomes of the
   * delivery then means nothing to it.
   */
  readonly isOutside: boolean;
}

/** The points of a delivery at which a test may hold it. */
export type Seam = "after claim" | "before settle" | "after settle";

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
  startedAt: number;
  /**
   * The ids of all messages that the handler was called with in the same call, in order: one array for
   * all of them; `undefined` for a message that no handler was called with.
   */
  batch: readonly MessageId[] | undefined;
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
  /** What the app is to use in place of a driver. */
  driver(driver: Driver): Driver;
  /** A delivery has got to a seam: it goes on when the result resolves, at once if there is none. */
  reach(seam: Seam, delivery: DeliveryRecord): Promise<void> | undefined;
  /** Runs what is asked of a broker of the app, also by code that is no part of the app. */
  enter<T>(work: () => Promise<T>): Promise<T>;
  /** How a loop sleeps that has nothing to do; for its poll interval unless given. */
  readonly idleSleep?: IdleSleep;
}

/** The runtime of production. */
export const PRODUCTION: Runtime = {
  observe: () => {},
  clock: "database",
  renewalsPaused: false,
  driver: (driver) => driver,
  reach: () => undefined,
  enter: (work) => work(),
};
