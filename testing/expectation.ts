import { AssertionError } from "node:assert";
import { inspect, isDeepStrictEqual } from "node:util";
import { failedTests } from "./failed_tests.ts";
import type { Trace } from "./trace.ts";

/** What an assertion compares, and says when it fails. */
export interface Comparison {
  /** What should have been. */
  readonly wanted: string;
  /** What was instead. */
  readonly found: string;
  readonly expected: unknown;
  readonly actual: unknown;
}

/** Fails with what was expected of something, what was found, and what happened. */
export class Expectation {
  readonly #of: string;
  readonly #trace: Trace;

  /** @param of what is looked at, as it stands in the message */
  constructor(of: string, trace: Trace) {
    this.#of = of;
    this.#trace = trace;
  }

  /** Throws an `AssertionError` unless it holds. */
  check(holds: boolean, { wanted, found, expected, actual }: Comparison): void {
    if (holds) return;
    failedTests.add(this.#trace);
    throw new AssertionError({
      message: `Expected of ${this.#of}: ${wanted}, but found: ${found}\n` +
        `What happened:\n${this.#trace}`,
      expected,
      actual,
      operator: "holdfast",
    });
  }

  /** Throws unless one of these equals the value. */
  checkEqualTo(value: unknown, values: readonly unknown[], what: string): void {
    this.check(values.some((each) => isDeepStrictEqual(each, value)), {
      wanted: `${what} ${inspect(value)}`,
      found: inspect(values),
      expected: value,
      actual: values,
    });
  }
}
