import { toDelay } from "./delay.ts";
import type { Duration } from "./duration.ts";

/**
 * What a handler decided about its message. Made by `ack`, `retry`, `retryAfter`, `drop` and
 * `deadLetter`.
 */
export type Outcome =
  | { readonly kind: "ack" }
  | { readonly kind: "retry" }
  | {
    readonly kind: "retryAfter";
    /** In milliseconds. */
    readonly delay: number;
    readonly reason?: string;
  }
  | { readonly kind: "drop"; readonly reason?: string }
  | { readonly kind: "deadLetter"; readonly reason?: string };

/**
 * The message is done: its row is deleted, or marked where the table has the role `processedAt`. A
 * handler that returns nothing acks, unless its signal has aborted: then it has been cut short.
 */
export function ack(): Outcome {
  return { kind: "ack" };
}

/** The message is to be delivered again, at once. */
export function retry(): Outcome {
  return { kind: "retry" };
}

/**
 * The message is to be delivered again, but not before this much time has passed. That needs the role
 * `retryAfter`, or the lease form with the role `attempt`; elsewhere it comes back at once, which the
 * subscription warns of once.
 *
 * @param delay how long, in milliseconds or by unit
 * @param reason why, for the log
 * @throws {TypeError} if the delay is no duration
 * @throws {RangeError} if it is negative, or longer than 36,500 days
 */
export function retryAfter(delay: Duration, reason?: string): Outcome {
  const milliseconds = toDelay(delay, "the delay of retryAfter", "Cannot retry");
  return { kind: "retryAfter", delay: milliseconds, ...because(reason) };
}

/**
 * The message is given up: its row is deleted or marked, as by `ack`, but it counts as dropped.
 *
 * @param reason why, for the log
 */
export function drop(reason?: string): Outcome {
  return { kind: "drop", ...because(reason) };
}

/**
 * The message is given up, but kept for people to look at: its row moves to where the subscription's
 * option `deadLetter` says. Without that option it is a failure.
 *
 * @param reason why, for the log
 */
export function deadLetter(reason?: string): Outcome {
  return { kind: "deadLetter", ...because(reason) };
}

/** Whether a value is an outcome. */
export function isOutcome(value: unknown): value is Outcome {
  const { kind, delay } = Object(value) as { readonly kind?: unknown; readonly delay?: unknown };
  if (kind === "retryAfter") return typeof delay === "number" && delay >= 0;
  return kind === "ack" || kind === "retry" || kind === "drop" || kind === "deadLetter";
}

function because(reason: string | undefined): { readonly reason?: string } {
  return reason === undefined ? {} : { reason };
}
