import assert from "node:assert/strict";
import { inDelivery, inRealTime, random, timeScope } from "../src/clock.ts";
import { LiveTime } from "./live_time.ts";
import type { TestTime } from "./test_time.ts";

const realSleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

Deno.test("a live clock replaces nothing and passes by itself", async () => {
  const before = [setTimeout, Date, fetch];
  using time: TestTime = new LiveTime();
  assert.deepEqual([setTimeout, Date, fetch], before);
  await realSleep(10);
  assert.ok(time.elapsed >= 9);
  assert.ok(Math.abs(time.now - Date.now()) < 1_000);
  assert.deepEqual(time.pending, []);
});

Deno.test("advance sleeps, then waits for what is in flight", async () => {
  using time = new LiveTime();
  let settled = false;
  const io = async () => {
    assert.equal(timeScope.getStore(), undefined);
    await realSleep(40);
    settled = true;
  };
  const done = time.run(() => inRealTime(io));
  await time.advance(5);
  assert.ok(settled);
  await done;
  const end = time.now + 10;
  await time.advanceTo(new Date(end));
  assert.ok(time.now >= end - 1);
  await assert.rejects(time.advanceTo(end - 5_000), RangeError);
  await assert.rejects(time.advance({ seconds: -1 }), RangeError);
});

Deno.test("quiet does not wait for deliveries in work, but for a hold", async () => {
  using time = new LiveTime();
  const { promise, resolve } = Promise.withResolvers<void>();
  const handled = time.run(() => inDelivery("orders 1", () => promise));
  await time.quiet();
  const hold = time.hold();
  let quiet = false;
  const waiting = time.quiet().then(() => quiet = true);
  await realSleep(5);
  assert.equal(quiet, false);
  hold[Symbol.dispose]();
  await waiting;
  resolve();
  await handled;
});

Deno.test("random numbers are the host's", () => {
  using time = new LiveTime();
  const drawn = time.run(() => [random(), random()]);
  assert.notEqual(drawn[0], drawn[1]);
});
