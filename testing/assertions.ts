import { AssertionError } from "node:assert";
import { inspect, isDeepStrictEqual } from "node:util";
import type { Outcome } from "../src/outcome.ts";
import type { DeliveryRecord } from "../src/runtime.ts";
import type { Trace } from "./trace.ts";

/**
 * What is asserted of one subscription's deliveries. An assertion that fails shows what happened
 * instead; one that holds returns the same object, so that they can be chained.
 *
 * @typeParam Out what the handler gets
 */
export class SubscriberAssertions<Out> {
  readonly #queue: string;
  readonly #deliveries: readonly DeliveryRecord[];
  readonly #trace: Trace;

  /** Asserts of these deliveries; made by `TestApp.subscriber`. */
  constructor(queue: string, deliveries: readonly DeliveryRecord[], trace: Trace) {
    this.#queue = queue;
    this.#deliveries = deliveries;
    this.#trace = trace;
  }

  /** The messages that reached the handler, in order. */
  received(): readonly Out[] {
    return this.#deliveries.map(({ message }) => message as Out);
  }

  /** The outcomes that were carried out, in order of the deliveries' start. */
  outcomes(): readonly Outcome[] {
    return this.#deliveries.filter(({ settled }) => settled).map(({ outcome }) => outcome!);
  }

  /** Exactly one delivery has started. */
  assertCalledOnce(): this {
    return this.assertCalled(1);
  }

  /** Exactly this many deliveries have started. */
  assertCalled(times: number): this {
    const actual = this.#deliveries.length;
    return this.#assert(actual === times, `${times} deliveries`, `${actual}`, times, actual);
  }

  /** No delivery has started. */
  assertNotCalled(): this {
    return this.assertCalled(0);
  }

  /** A delivery has brought a message that equals this one, property by property. */
  assertReceived(message: Out): this {
    const received = this.received();
    return this.#assert(
      received.some((each) => isDeepStrictEqual(each, message)),
      `a delivery of ${inspect(message)}`,
      inspect(received),
      message,
      received,
    );
  }

  /** The latest delivery to start was settled, and with this outcome; by any reason if none is given. */
  assertSettled(outcome: Outcome): this {
    const last = this.#deliveries.at(-1);
    const actual = last?.settled ? last.outcome : undefined;
    return this.#assert(
      isDeepStrictEqual(actual, outcome) || isSameForAnyReason(actual, outcome),
      `the latest delivery settled as ${inspect(outcome)}`,
      last === undefined ? "no delivery" : inspect(actual ?? last.error ?? "not settled"),
      outcome,
      actual,
    );
  }

  #assert(
    holds: boolean,
    wanted: string,
    found: string,
    expected: unknown,
    actual: unknown,
  ): this {
    if (holds) return this;
    throw new AssertionError({
      message: `Expected of queue "${this.#queue}": ${wanted}, but found: ${found}\n` +
        `What happened:\n${this.#trace}`,
      expected,
      actual,
      operator: "holdfast",
    });
  }
}

function isSameForAnyReason(actual: Outcome | undefined, outcome: Outcome): boolean {
  if (actual === undefined || !("reason" in actual) || "reason" in outcome) return false;
  const { reason: _reason, ...rest } = actual;
  return isDeepStrictEqual(rest, outcome);
}
