import assert from "node:assert/strict";
import { databaseNow, inDelivery, inRealTime, random, sleep, timeScope } from "../src/clock.ts";
import { FakeTime, FakeTimeError } from "./fake_time.ts";

const realSleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

Deno.test("real I/O in a delivery moves the clock by nothing", async () => {
  using time = new FakeTime();
  await using server = Deno.serve({ port: 0, onListen() {} }, async () => {
    await realSleep(20);
    return new Response("hello");
  });
  time.run(() => setInterval(() => {}, 1));
  const steps: string[] = [];
  const handled = time.run(() =>
    inDelivery("orders 1", async () => {
      const response = await fetch(`http://localhost:${server.addr.port}/`);
      steps.push(`${await response.text()} at ${time.elapsed}`);
      const text = await Deno.readTextFile(new URL(import.meta.url));
      steps.push(`${text.length > 0} at ${time.elapsed}`);
      await inRealTime(() => realSleep(20));
      steps.push(`database at ${time.elapsed}`);
      await sleep(7);
      steps.push(`slept at ${time.elapsed}`);
    })
  );
  await time.advance(10);
  await handled;
  assert.deepEqual(steps, ["hello at 0", "true at 0", "database at 0", "slept at 7"]);
});

Deno.test("a delivery that waits for what no timer drives is named after the patience", async () => {
  using time = new FakeTime({ patience: 20 });
  const { promise, resolve } = Promise.withResolvers<void>();
  const handled = time.run(() => inDelivery("orders 7", () => promise));
  time.run(() => setTimeout(() => {}, 5));
  await assert.rejects(time.advance(10), (error: FakeTimeError) => {
    assert.ok(error instanceof FakeTimeError);
    assert.equal(error.code, "fake_time");
    assert.match(
      error.message,
      /the delivery of orders 7 has waited 20 ms .* node:timers.* stay real/,
    );
    return true;
  });
  assert.equal(time.elapsed, 0);
  resolve();
  await handled;
  await time.advance(10);
  assert.equal(time.elapsed, 10);
});

Deno.test("timers count for the delivery that created them, also in a delivery within it", async () => {
  using time = new FakeTime({ patience: 20 });
  const { promise, resolve } = Promise.withResolvers<void>();
  const outer = time.run(() => inDelivery("outer", () => inDelivery("inner", () => sleep(5))));
  await time.advance(5);
  await outer;
  const sleeper = time.run(() => inDelivery("sleeper", () => sleep(50)));
  const waiter = time.run(() => inDelivery("waiter", () => promise));
  await assert.rejects(time.advance(50), /the delivery of waiter has/);
  resolve();
  await waiter;
  await time.advance(50);
  await sleeper;
});

Deno.test("an abort ends a handler's sleep, and its timer with it", async () => {
  using time = new FakeTime();
  const controller = new AbortController();
  const handled = time.run(() => {
    setTimeout(() => controller.abort(), 1_000);
    return inDelivery("orders 1", async () => {
      await sleep(600_000, controller.signal);
      return time.elapsed;
    });
  });
  await time.advance(5_000);
  assert.equal(await handled, 1_000);
  assert.deepEqual(time.pending, []);
});

Deno.test("the seed decides the random numbers", () => {
  const draw = (seed?: number) => {
    using time = new FakeTime({ seed });
    return time.run(() => Array.from({ length: 100 }, random));
  };
  assert.deepEqual(draw(), draw(1));
  assert.notDeepEqual(draw(), draw(2));
  assert.ok(draw().every((number) => number >= 0 && number < 1));
});

Deno.test("code that outlives its clock takes the host's time for the database's", () => {
  const time = new FakeTime({ now: 0 });
  const scope = time.run(() => timeScope.getStore());
  assert.equal(timeScope.run(scope, databaseNow), 0);
  time[Symbol.dispose]();
  assert(timeScope.run(scope, databaseNow) >= Date.now() - 1_000);
});
