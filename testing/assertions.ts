import { inspect, isDeepStrictEqual } from "node:util";
import type { Outcome } from "../src/outcome.ts";
import type { DeliveryRecord } from "../src/runtime.ts";
import { Expectation } from "./expectation.ts";
import type { Trace } from "./trace.ts";

/**
 * What is asserted of one subscription's deliveries. An assertion that fails shows what happened
 * instead; one that holds returns the same object, so that they can be chained.
 *
 * @typeParam Out what the handler gets
 */
export class SubscriberAssertions<Out> {
  readonly #deliveries: readonly DeliveryRecord[];
  readonly #expectation: Expectation;

  /** Asserts of these deliveries; made by `TestApp.subscriber`. */
  constructor(queue: string, deliveries: readonly DeliveryRecord[], trace: Trace) {
    this.#deliveries = deliveries;
    this.#expectation = new Expectation(`queue "${queue}"`, trace);
  }

  /** The messages that reached the handler, in order. */
  received(): readonly Out[] {
    return this.batches().flat();
  }

  /** The messages of each of the handler's calls, in order. */
  batches(): readonly (readonly Out[])[] {
    const calls = new Map<unknown, Out[]>();
    for (const { batch, message } of this.#deliveries) {
      if (batch === undefined) continue;
      const messages = calls.get(batch) ?? [];
      messages.push(message as Out);
      calls.set(batch, messages);
    }
    return [...calls.values()];
  }

  /** The outcomes that were carried out, in order of the deliveries' start. */
  outcomes(): readonly Outcome[] {
    return this.#deliveries.filter(({ settled }) => settled).map(({ outcome }) => outcome!);
  }

  /** The errors of deliveries, in order of their start: of handlers, of decoding, of settling. */
  errors(): readonly Error[] {
    return this.#deliveries.flatMap(({ error }) => error ?? []);
  }

  /** The handler was called exactly once. */
  assertCalledOnce(): this {
    return this.assertCalled(1);
  }

  /** The handler was called exactly this many times, each time for a message or a batch of them. */
  assertCalled(times: number): this {
    const actual = this.batches().length;
    this.#expectation.check(actual === times, {
      wanted: `${times} ${times === 1 ? "call" : "calls"} of its handler`,
      found: `${actual}`,
      expected: times,
      actual,
    });
    return this;
  }

  /** The handler was not called. */
  assertNotCalled(): this {
    return this.assertCalled(0);
  }

  /** The handler got a message that equals this one, property by property. */
  assertReceived(message: Out): this {
    this.#expectation.checkEqualTo(message, this.received(), "a delivery of");
    return this;
  }

  /** The latest delivery to start was settled, and with this outcome; by any reason if none is given. */
  assertSettled(outcome: Outcome): this {
    const last = this.#deliveries.at(-1);
    const actual = last?.settled ? last.outcome : undefined;
    const holds = isDeepStrictEqual(actual, outcome) || isSameForAnyReason(actual, outcome);
    this.#expectation.check(holds, {
      wanted: `the latest delivery settled as ${inspect(outcome)}`,
      found: last === undefined ? "no delivery" : describeEnd(last),
      expected: outcome,
      actual,
    });
    return this;
  }
}

function describeEnd({ settled, outcome, error, endedAt }: DeliveryRecord): string {
  const reason = error === undefined ? "" : `, ${error}`;
  if (settled) return `${inspect(outcome)}${reason}`;
  return endedAt === undefined ? `still in work${reason}` : `not settled${reason}`;
}

function isSameForAnyReason(actual: Outcome | undefined, outcome: Outcome): boolean {
  if (actual === undefined || !("reason" in actual) || "reason" in outcome) return false;
  const { reason: _reason, ...rest } = actual;
  return isDeepStrictEqual(rest, outcome);
}
