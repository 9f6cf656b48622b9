import assert from "node:assert/strict";
import { inbox, json, retry } from "../mod.ts";
import type { NextDue } from "../src/driver/dialect.ts";
import type { AnyQueue } from "../src/queue.ts";
import type { DeliveryRecord } from "../src/runtime.ts";
import type { AnySubscription } from "../src/subscription.ts";
import { Drain, type DrainedApp } from "./drain.ts";
import { FakeTime, FakeTimeError } from "./fake_time.ts";

Deno.test("Drain: a message that is retried for ever is an error, which names it", async () => {
  using time = new FakeTime();
  const { app, ended } = appOf(time, () => LATER, () => void ended.push(DELIVERY));
  await assert.rejects(new Drain(app, {}).run(), (error: unknown) => {
    assert(error instanceof FakeTimeError);
    assert.equal(error.reason, "endless");
    assert.match(
      error.message,
      /10000 deliveries .* message 7 of queue "jobs".*; give its subscription maxAttempts/,
    );
    return true;
  });
  assert.equal(ended.length, 10_000);
});

Deno.test("Drain: a message that is never claimed is an error, also if its lease is renewed", async () => {
  for (const next of [{ dueIn: undefined, isWaiting: true }, LATER]) {
    using time = new FakeTime();
    const { app } = appOf(time, () => next);
    await assert.rejects(new Drain(app, {}).run(), (error: unknown) => {
      assert(error instanceof FakeTimeError);
      assert.equal(error.reason, "stuck");
      assert.match(error.message, /^Cannot drain the app: messages are left .* by until$/);
      return true;
    });
    assert.equal((await new Drain(app, { until: 10 }).run()).deliveries, 0);
  }
});

Deno.test("Drain: timers of the service may fire as often as they do before a message is due", async () => {
  using time = new FakeTime();
  let ticks = 0;
  const ticker = time.run(() => setInterval(() => ticks++, 1_000));
  const end = time.now + 20_000_000;
  const { app, ended } = appOf(
    time,
    () => ({ dueIn: ended.length > 0 ? undefined : Math.max(1, end - time.now), isWaiting: false }),
    () => {
      if (time.now >= end && ended.length === 0) ended.push(DELIVERY);
    },
  );
  assert.deepEqual(await new Drain(app, {}).run(), {
    deliveries: 1,
    outcomes: { retry: 1 },
    errors: 0,
  });
  assert.equal(ticks, 20_000);
  clearInterval(ticker);
});

/** An app whose messages are as the test says. */
function appOf(
  time: FakeTime,
  nextDue: () => NextDue,
  quiet: () => void = () => {},
): { readonly app: DrainedApp; readonly ended: DeliveryRecord[] } {
  const ended: DeliveryRecord[] = [];
  const app = {
    time,
    ended,
    loops: [{ queue: queue as AnyQueue, nextDue: () => Promise.resolve(nextDue()) }],
    isBusy: () => false,
    quiet: () => Promise.resolve(quiet()),
  };
  return { app, ended };
}

const queue = inbox("jobs", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: json<{ name: string }>("payload"),
}).queue("jobs");
const LATER = { dueIn: 1_000, isWaiting: false };
const DELIVERY: DeliveryRecord = {
  subscription: queue.subscribe(() => retry()) as unknown as AnySubscription,
  queue: "jobs",
  id: 7n,
  attempt: 1,
  startedAt: 0,
  batch: undefined,
  message: undefined,
  outcome: retry(),
  error: undefined,
  settled: true,
  endedAt: 0,
};
