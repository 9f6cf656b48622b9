import type { Claim, Settlement } from "./claim/claim_form.ts";
import { deadLetterId } from "./dead_letter.ts";
import { DeclarationError } from "./errors.ts";
import { deadLetter, drop, type Outcome } from "./outcome.ts";
import { errorText } from "./error_text.ts";
import type { AnyQueue } from "./queue.ts";
import type { AnySubscription } from "./subscription.ts";

/** What was decided about a message, and what that does to its row. */
export interface Decision {
  readonly outcome: Outcome;
  /** `undefined` where the handler has settled its message itself. */
  readonly settlement: Settlement | undefined;
  /** What went wrong. */
  readonly error?: Error;
  /** Whether the app is to stop for it. */
  readonly isFatal?: boolean;
  /** Whether the message is lost though nobody has asked for that. */
  readonly isLoss?: boolean;
}

/**
 * What an outcome does to the row. One that asks for another attempt gives the message up where its
 * attempts are spent.
 *
 * @throws {DeclarationError} if the message is to be dead-lettered, and the subscription cannot
 */
export function decisionOf(
  outcome: Outcome,
  subscription: AnySubscription,
  attempt: number | undefined,
): Decision {
  switch (outcome.kind) {
    case "ack":
      return { outcome, settlement: { kind: "remove", acked: true } };
    case "drop":
      return {
        outcome,
        settlement: { kind: "remove", acked: false, error: errorText(outcome.reason) },
      };
    case "deadLetter":
      return bury(subscription, outcome, outcome.reason);
    case "retry":
      return isSpent(subscription, attempt)
        ? giveUp(subscription, attempt, "retry() was returned")
        : { outcome, settlement: { kind: "free" } };
    case "retryAfter": {
      const { delay, reason } = outcome;
      return isSpent(subscription, attempt)
        ? giveUp(subscription, attempt, reason ?? "retryAfter() was returned")
        : { outcome, settlement: { kind: "delay", delay, error: errorText(reason) } };
    }
  }
}

/** Whether this attempt was the last. */
export function isSpent(
  { options: { maxAttempts } }: AnySubscription,
  attempt: number | undefined,
): boolean {
  return maxAttempts !== undefined && attempt !== undefined && attempt >= maxAttempts;
}

/** The message is dead-lettered or, where there is no place for it, dropped. */
export function giveUp(
  subscription: AnySubscription,
  attempt: number | undefined,
  reason: string,
): Decision {
  const { maxAttempts } = subscription.options;
  const why = maxAttempts === undefined
    ? reason
    : `Attempt ${attempt} of ${maxAttempts}: ${reason}`;
  if (canBury(subscription)) return bury(subscription, deadLetter(why), reason);
  return lose(why, errorText(reason));
}

/**
 * Likewise for a message that comes with its attempts spent, and that no handler is to see again. What
 * is known of its last failure stays.
 */
export function giveUpUnseen(
  subscription: AnySubscription,
  { attempt, content }: Pick<Claim, "attempt" | "content">,
): Decision {
  const { maxAttempts } = subscription.options;
  const how = content.hasFailed ? "" : ": its handler never came to an end";
  const why = `Its attempts are spent, ${attempt! - 1} of ${maxAttempts}${how}`;
  const error = content.hasFailed ? undefined : why;
  if (canBury(subscription)) return bury(subscription, deadLetter(why), error);
  return lose(why, error);
}

function lose(why: string, error: string | undefined): Decision {
  return { outcome: drop(why), settlement: { kind: "remove", acked: false, error }, isLoss: true };
}

/** Whether there is a place for messages that are given up. */
export function canBury(
  { queue, options }: Pick<AnySubscription, "queue" | "options">,
): boolean {
  return options.deadLetter !== undefined || queue.inbox.statements.deadLetter !== undefined;
}

function bury(
  { queue, options }: AnySubscription,
  outcome: Outcome,
  reason: string | undefined,
): Decision {
  const { deadLetter: dead } = options;
  if (!canBury({ queue, options })) {
    throw new DeclarationError(
      `Cannot dead-letter a message of queue "${queue.name}": give its subscription the option ` +
        `deadLetter, the group or the inbox that messages which were given up are moved to`,
    );
  }
  const newId = dead && deadLetterId(queue as AnyQueue, dead);
  return { outcome, settlement: { kind: "bury", error: errorText(reason), newId } };
}
