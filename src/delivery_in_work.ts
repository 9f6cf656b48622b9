import type { Claim } from "./claim/claim_form.ts";
import { inThisContext } from "./clock.ts";
import type { Delivery, DeliveryLog } from "./delivery.ts";
import { logOf } from "./log.ts";
import { isOutcome, type Outcome } from "./outcome.ts";
import { settlementOf } from "./settlement.ts";
import type { StateKey } from "./state.ts";
import type { AnySubscription } from "./subscription.ts";

/** The states that hooks have set. */
export interface States {
  /** What is set under this key; throws `DeclarationError` if nothing is. */
  get<T>(key: StateKey<T>): T;
}

/** A delivery as its handler sees it, over the claim that holds its row. */
export class DeliveryInWork implements Delivery {
  readonly queue: string;
  readonly log: DeliveryLog;
  readonly #subscription: AnySubscription;
  readonly #claim: Claim;
  readonly #states: States;
  readonly #abort = new AbortController();
  #settledAs: Outcome | undefined;
  #settling: Promise<void> | undefined;

  /** Made in the handler's own context, in which listeners of the signal are then called. */
  constructor(subscription: AnySubscription, claim: Claim, states: States) {
    const queue = subscription.queue.name;
    this.queue = queue;
    this.#subscription = subscription;
    this.#claim = claim;
    this.#states = states;
    this.log = logOf("delivery").with({ queue, id: claim.id, attempt: claim.attempt });
    this.#follow(claim.signal);
  }

  get id(): Delivery["id"] {
    return this.#claim.id;
  }

  get attempt(): number | undefined {
    return this.#claim.attempt;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** What the handler itself has settled its message as. */
  get settledAs(): Outcome | undefined {
    return this.#settledAs;
  }

  get<T>(key: StateKey<T>): T {
    return this.#states.get(key);
  }

  settle(outcome: Outcome): Promise<void> {
    const settling = this.#settle(outcome);
    this.#settling ??= settling;
    // A handler need not wait for it: what becomes of it is recorded all the same.
    settling.catch(() => {});
    return settling;
  }

  /** Waits for a settle that the handler has begun, and perhaps not waited for itself. */
  async untilSettled(): Promise<void> {
    await this.#settling?.catch(() => {});
  }

  async #settle(outcome: Outcome): Promise<void> {
    if (!isOutcome(outcome)) {
      throw new TypeError(
        `Cannot settle message ${this.id} of queue "${this.queue}" as ${String(outcome)}: ` +
          `give ack(), retry(), retryAfter(…), drop() or deadLetter()`,
      );
    }
    await this.#claim.settle(settlementOf(outcome, this.#subscription));
    this.#settledAs = outcome;
  }

  #follow(signal: AbortSignal): void {
    const abort = inThisContext(() => this.#abort.abort(signal.reason));
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  }
}
