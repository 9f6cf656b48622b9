import assert from "node:assert/strict";
import { FakeTime } from "../testing/mod.ts";
import {
  after,
  inDelivery,
  inRealTime,
  inThisContext,
  now,
  random,
  sleep,
  timeScope,
} from "./clock.ts";

const LONGEST = 2 ** 31 - 1;
const DAY = 86_400_000;

Deno.test("in production time, timers and random numbers are the host's", async () => {
  assert.equal(timeScope.getStore(), undefined);
  assert(Math.abs(now() - Date.now()) < 5_000);
  const number = random();
  assert(number >= 0 && number < 1);
  await sleep(1);
  assert.equal(await inRealTime(() => Promise.resolve(5)), 5);
  assert.equal(await inDelivery("a delivery", () => Promise.resolve(5)), 5);
});

Deno.test("a timer calls back once, at its time", async () => {
  using time = new FakeTime();
  const calls: number[] = [];
  time.run(() => {
    for (const ms of [0, 1, 1_000]) after(ms, () => calls.push(time.elapsed));
  });
  await time.advance(999);
  assert.deepEqual(calls, [0, 1]);
  await time.advance(DAY);
  assert.deepEqual(calls, [0, 1, 1_000]);
});

Deno.test("a timer longer than 2^31-1 ms is re-armed, and never fires at once", async () => {
  using time = new FakeTime();
  const calls: number[] = [];
  const lengths = [LONGEST, LONGEST + 1, 2 * LONGEST, 100 * DAY];
  time.run(() => {
    for (const ms of lengths) after(ms, () => calls.push(time.elapsed));
  });
  await time.advance(LONGEST - 1);
  assert.deepEqual(calls, []);
  await time.advance(1);
  assert.deepEqual(calls, [LONGEST]);
  await time.advance(1);
  assert.deepEqual(calls, [LONGEST, LONGEST + 1]);
  await time.advance(100 * DAY);
  assert.deepEqual(calls, lengths);
  assert.deepEqual(time.pending, []);
});

Deno.test("a timer without end never fires", async () => {
  using time = new FakeTime();
  let called = false;
  const timer = time.run(() => after(Infinity, () => called = true));
  await time.advance(1_000 * DAY);
  assert.equal(called, false);
  time.run(() => timer.cancel());
  assert.deepEqual(time.pending, []);
});

Deno.test("no length given to setTimeout is above 2^31-1 ms", () => {
  const lengths: (number | undefined)[] = [];
  const original = globalThis.setTimeout;
  globalThis.setTimeout = ((_: unknown, ms?: number) => lengths.push(ms)) as never;
  try {
    for (const ms of [5, LONGEST, LONGEST + 1, 1e15, Infinity]) after(ms, () => {});
  } finally {
    globalThis.setTimeout = original;
  }
  assert.deepEqual(lengths, [5, LONGEST, LONGEST, LONGEST, LONGEST]);
});

Deno.test("a timer is cancelled, also after it was re-armed, also twice", async () => {
  using time = new FakeTime();
  const [short, long] = time.run(() =>
    [1_000, 3 * LONGEST].map((ms) => after(ms, () => assert.fail(`${ms} ms`)))
  );
  short!.cancel();
  short!.cancel();
  await time.advance(LONGEST + 5);
  long!.cancel();
  await time.advance(4 * LONGEST);
  assert.deepEqual(time.pending, []);
});

Deno.test("cancelling a timer that has fired is nothing", async () => {
  using time = new FakeTime();
  let calls = 0;
  const timer = time.run(() => after(1, () => calls++));
  await time.advance(5);
  timer.cancel();
  assert.equal(calls, 1);
});

Deno.test("a sleep ends at its time or at the abort, and never rejects", async () => {
  using time = new FakeTime();
  const abort = new AbortController();
  const ends: string[] = [];
  time.run(() => {
    sleep(1_000).then(() => ends.push(`slept ${time.elapsed}`));
    sleep(50 * DAY, abort.signal).then(() => ends.push(`aborted ${time.elapsed}`));
    sleep(50 * DAY, AbortSignal.abort(new Error("no"))).then(() =>
      ends.push(`none ${time.elapsed}`)
    );
  });
  await time.quiet();
  assert.deepEqual(ends, ["none 0"]);
  await time.advance(1_500);
  abort.abort(new Error("enough"));
  await time.quiet();
  assert.deepEqual(ends, ["none 0", "slept 1000", "aborted 1500"]);
  assert.deepEqual(time.pending, [], "the timer of an aborted sleep is cleared");
});

Deno.test("a sleep leaves no listener on a signal that lives on", async () => {
  using time = new FakeTime();
  const { signal } = new AbortController();
  let listeners = 0;
  const add = signal.addEventListener.bind(signal) as (...args: unknown[]) => void;
  const remove = signal.removeEventListener.bind(signal) as (...args: unknown[]) => void;
  signal.addEventListener = (...args: unknown[]): void => {
    listeners++;
    add(...args);
  };
  signal.removeEventListener = (...args: unknown[]): void => {
    listeners--;
    remove(...args);
  };
  time.run(() => void [1, 2, 3].map((ms) => sleep(ms, signal)));
  assert.equal(listeners, 3);
  await time.advance(10);
  assert.equal(listeners, 0);
});

Deno.test("I/O runs outside the harness, a delivery in a scope of its own", async () => {
  using time = new FakeTime();
  await time.run(async () => {
    const app = timeScope.getStore();
    assert.notEqual(app, undefined);
    assert.equal(await inRealTime(() => Promise.resolve(timeScope.getStore())), undefined);
    const delivery = await inDelivery("a", () => Promise.resolve(timeScope.getStore()));
    assert.notEqual(delivery, undefined);
    assert.notEqual(delivery, app);
    assert.equal(timeScope.getStore(), app);
  });
});

Deno.test("a callback runs in the context in which it was bound", () => {
  using time = new FakeTime();
  let seen: unknown;
  const callback = time.run(() => inThisContext(() => seen = timeScope.getStore()));
  callback();
  assert.notEqual(seen, undefined);
  assert.equal(timeScope.getStore(), undefined);
});
