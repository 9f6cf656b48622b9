import { AssertionError } from "node:assert";
import { type Duration, toMilliseconds } from "../src/duration.ts";
import type { TestTime } from "./test_time.ts";
import type { Trace } from "./trace.ts";

/** How long is waited for a condition. */
export interface WaitForOptions {
  /** How much time may pass: a day of virtual time or 5 seconds of real time unless given. */
  readonly within?: Duration;
}

/** What is waited for: it holds when it is true, or when its assertions do not throw. */
export type Condition = () => boolean | object | Promise<boolean | object>;

/** What waits. */
export interface WaitingApp {
  readonly time: TestTime;
  readonly trace: Trace;
  /** Resolves when the app has done all it can do without time passing. */
  quiet(): Promise<void>;
}

/** Lets time pass until a condition holds. */
export async function waitFor(
  condition: Condition,
  { within }: WaitForOptions,
  { time, trace, quiet }: WaitingApp,
): Promise<void> {
  const most = toMilliseconds(within ?? (time.isVirtual ? A_DAY : FIVE_SECONDS), "within");
  const end = time.now + most;
  for (;;) {
    await quiet();
    const failure = await failureOf(condition);
    if (failure === undefined) return;
    if (time.now >= end) throw notReached(condition, failure, most, trace);
    await time.step(end);
  }
}

/** Why it does not hold; `undefined` if it does. */
async function failureOf(condition: Condition): Promise<string | undefined> {
  try {
    return await condition() ? undefined : "it is not so";
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "AssertionError") throw error;
    return error.message;
  }
}

function notReached(condition: Condition, failure: string, most: number, trace: Trace): Error {
  return new AssertionError({
    message: `Waited ${most / 1000} s in vain for ${condition}: ${failure}\n` +
      (failure.includes(`${trace}`) ? "" : `What happened:\n${trace}`),
    operator: "holdfast",
  });
}

const A_DAY = 86_400_000;
const FIVE_SECONDS = 5_000;
