import type { PublishRecord } from "../src/runtime.ts";
import { Expectation } from "./expectation.ts";
import type { Trace } from "./trace.ts";

/**
 * What is asserted of the messages that an app has published to one queue: by handlers, schedules, the
 * test. What was rolled back does not count. An assertion that fails shows what happened instead.
 *
 * @typeParam In what is published
 */
export class PublishedAssertions<In> {
  readonly #publishes: readonly PublishRecord[];
  readonly #expectation: Expectation;

  /** Asserts of these; made by `TestApp.published`. */
  constructor(queue: string, publishes: readonly PublishRecord[], trace: Trace) {
    this.#publishes = publishes;
    this.#expectation = new Expectation(`queue "${queue}"`, trace);
  }

  /** The messages, in the order in which they were published. */
  messages(): readonly In[] {
    return messagesOf(this.#kept);
  }

  /** The messages whose transaction was rolled back. */
  rolledBack(): readonly In[] {
    return messagesOf(this.#publishes.filter(({ fate }) => fate === "rolled back"));
  }

  /** Exactly one message was published. */
  assertPublishedOnce(): this {
    return this.assertPublished(1);
  }

  /** Exactly this many messages were published. */
  assertPublished(times: number): this {
    const actual = this.#kept.length;
    this.#expectation.check(actual === times, {
      wanted: `${times} ${times === 1 ? "message" : "messages"} published`,
      found: `${actual}`,
      expected: times,
      actual,
    });
    return this;
  }

  /** No message was published. */
  assertNotPublished(): this {
    return this.assertPublished(0);
  }

  /** A message was published that equals this one, property by property. */
  assertMessage(message: In): this {
    this.#expectation.checkEqualTo(message, this.messages(), "a publish of");
    return this;
  }

  get #kept(): readonly PublishRecord[] {
    return this.#publishes.filter(({ fate }) => fate !== "rolled back");
  }
}

function messagesOf<In>(publishes: readonly PublishRecord[]): readonly In[] {
  return publishes.map(({ message }) => message as In);
}
