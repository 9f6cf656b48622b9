import assert from "node:assert/strict";
import { FakeTime } from "../testing/mod.ts";
import { Wake } from "./wake.ts";

/** Whether a promise has settled by now, when nothing else is left to happen without time. */
async function settled(time: FakeTime, promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  promise.then(() => done = true);
  await time.quiet();
  return done;
}

Deno.test("a sleep ends by itself", async () => {
  using time = new FakeTime();
  const sleep = time.run(() => new Wake().sleep(1_000));
  await time.advance(999);
  assert.equal(await settled(time, sleep), false);
  await time.advance(1);
  assert.equal(await settled(time, sleep), true);
  assert.deepEqual(time.pending, []);
});

Deno.test("a call ends the sleep at once, and its timer with it", async () => {
  using time = new FakeTime();
  const wake = new Wake();
  const sleep = time.run(() => wake.sleep(1_000));
  assert.equal(time.pending.length, 1);
  wake.call();
  assert.equal(await settled(time, sleep), true);
  assert.deepEqual(time.pending, []);
});

Deno.test("a call before the sleep keeps it from beginning, until it is forgotten", async () => {
  using time = new FakeTime();
  const wake = new Wake();
  wake.call();
  wake.call();
  assert.equal(await settled(time, time.run(() => wake.sleep(1_000))), true);
  assert.equal(await settled(time, time.run(() => wake.sleep(1_000))), true, "still remembered");
  wake.forget();
  const sleep = time.run(() => wake.sleep(1_000));
  assert.equal(await settled(time, sleep), false);
  await time.advance(1_000);
  assert.equal(await settled(time, sleep), true);
});

Deno.test("a call reaches who sleeps after a forget", async () => {
  using time = new FakeTime();
  const wake = new Wake();
  wake.forget();
  const sleep = time.run(() => wake.sleep(1_000));
  wake.forget(); // nothing was called: who sleeps is not cut off from the next call
  wake.call();
  assert.equal(await settled(time, sleep), true);
});

Deno.test("called resolves at a call, and at once if there was one", async () => {
  using time = new FakeTime();
  const wake = new Wake();
  const [first, second] = [wake.called(), wake.called()];
  assert.equal(await settled(time, first), false);
  wake.call();
  assert.equal(await settled(time, first), true);
  assert.equal(await settled(time, second), true);
  assert.equal(await settled(time, wake.called()), true);
  wake.forget();
  assert.equal(await settled(time, wake.called()), false);
});
