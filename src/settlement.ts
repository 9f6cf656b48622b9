import type { Settlement } from "./claim/claim_form.ts";
import { DeclarationError } from "./errors.ts";
import type { Outcome } from "./outcome.ts";
import type { AnySubscription } from "./subscription.ts";

/**
 * What an outcome does to the row.
 *
 * @throws {DeclarationError} if the message is to be dead-lettered, and the subscription cannot
 */
export function settlementOf(outcome: Outcome, subscription: AnySubscription): Settlement {
  switch (outcome.kind) {
    case "ack":
    case "drop":
      return { kind: "remove" };
    case "retry":
      return { kind: "free" };
    case "retryAfter":
      return { kind: "delay", delay: outcome.delay };
    case "deadLetter":
      return { kind: "bury", group: deadLetterOf(subscription) };
  }
}

function deadLetterOf({ queue, options }: AnySubscription): string {
  if (options.deadLetter !== undefined) return options.deadLetter;
  throw new DeclarationError(
    `Cannot dead-letter a message of queue "${queue.name}": give its subscription the option ` +
      `deadLetter, the name of the group that messages which were given up are moved to`,
  );
}
