import assert from "node:assert/strict";
import { setTimeout as realTimeout } from "node:timers";
import { type Delivery, retry, retryAfter } from "../../mod.ts";
import { failureOf } from "./failure_of.ts";
import { orders } from "./orders.ts";

const STUCK = `FakeTimeError: Cannot move the virtual clock: the delivery of message 1 of queue ` +
  `"orders" has waited 50 ms of real time for something that no virtual timer drives; use the ` +
  `global setTimeout (on Deno named imports of node:timers and node:timers/promises stay real), ` +
  `run slow I/O in time.track(), settle what it waits for from the test before time moves, or ` +
  `give a longer patience`;
const IGNORES = `- the handler of message 1 of queue "orders", which did not heed ` +
  `delivery.signal; let it return once that aborts`;
const LEFT = `LeakError: The app "shop" has stopped but left:\n`;
const BUSY = `FakeTimeError: Cannot move the virtual clock: the handler of message 1 of queue ` +
  `"orders" has asked for the time N times in T ms of real time, in one go; virtual time stands ` +
  `still while code runs, so that a loop never sees it pass: await a setTimeout in place of the ` +
  `loop, or give a longer patience; the last time was at `;

Deno.test("a handler that never ends is named by whoever waits for it, and at the end", async () => {
  const subscription = orders.subscribe(() => new Promise<void>(() => {}));
  const { error, leak } = await failureOf({ subscription });
  assert.equal(error, STUCK);
  assert.equal(leak, LEFT + IGNORES);
});

Deno.test("a handler that sleeps by a real timer is told which timers are real", async () => {
  const subscription = orders.subscribe(async () => {
    await new Promise<void>((resolve) => void realTimeout(resolve, 300));
  });
  const { error } = await failureOf({
    subscription,
    test: async (app) => {
      const stuck = await app.publish(orders, { order: 7 }).catch((error) => error);
      await new Promise((resolve) => setTimeout(resolve, 300));
      throw stuck;
    },
  });
  assert.equal(error, STUCK);
});

Deno.test("a handler that ignores its signal is named, and the timer it waits for", async () => {
  const subscription = orders.subscribe(async function nap() {
    await new Promise((resolve) => setTimeout(resolve, 3_600_000));
  });
  const { error, leak } = await failureOf({ subscription });
  assert.equal(error, "");
  assert.equal(
    leak.replace(/\n +at new Promise.*/, ""),
    `${LEFT}- a timer (setTimeout) of message 1 of queue "orders" that was never cleared; clear ` +
      `it when the work is done that needs it; it was created here:\n    at time_test.ts\n` +
      `    at nap time_test.ts\n${IGNORES}`,
  );
});

Deno.test("an interval that goes on is a leak, a listener of the signal is none", async () => {
  const leaky = orders.subscribe(function poll() {
    setInterval(() => {}, 1_000);
  });
  assert.equal(
    (await failureOf({ subscription: leaky })).leak,
    `${LEFT}- a timer (setInterval) of message 1 of queue "orders" that was never cleared; clear ` +
      `it when the work is done that needs it; it was created here:\n    at poll time_test.ts`,
  );
  const listening = orders.subscribe((_, { signal }) => {
    signal.addEventListener("abort", () => {});
  });
  const { error, leak } = await failureOf({ subscription: listening });
  assert.deepEqual([error, leak], ["", ""]);
});

Deno.test("a handler that waits in a loop is named with the place, whichever clock it asks", async () => {
  const loops: readonly (() => unknown)[] = [
    function loop() {
      while (Date.now() < 10);
    },
    function loop() {
      while (new Date().getTime() < 10);
    },
    function loop() {
      while (performance.now() < 10);
    },
    function loop() {
      while (Temporal.Now.instant().epochMilliseconds < 10);
    },
    async function loop() {
      while (Date.now() < 10) await undefined;
    },
  ];
  for (const loop of loops) {
    const subscription = orders.subscribe(() => loop() as void);
    const { error, leak, trace } = await failureOf({ subscription });
    assert.match(error.slice(BUSY.length), /^(loop )?time_test\.ts$/);
    assert.equal(error.slice(0, BUSY.length), BUSY);
    assert.equal(leak, "");
    assert(trace.includes(`orders: settled 1 (attempt 1) as retry, ${BUSY}`));
  }
});

Deno.test("the test of a handler that waits in a loop fails even if that catches all errors", async () => {
  function waitInVain(): void {
    try {
      while (Date.now() < 10);
    } catch {
      // whatever it was
    }
  }
  const subscription = orders.subscribe(() => waitInVain());
  const { error, leak } = await failureOf({ subscription });
  assert.equal(error, `${BUSY}waitInVain time_test.ts`);
  assert.equal(leak, "");

  const inTimer = orders.subscribe(async () => {
    await new Promise<void>((resolve) =>
      setTimeout(() => {
        waitInVain();
        resolve();
      }, 5)
    );
  });
  const late = await failureOf({
    subscription: inTimer,
    test: async (app) => {
      await app.publish(orders, { order: 7 });
      await app.advance(5);
    },
  });
  assert.equal(late.error, `${BUSY}waitInVain time_test.ts`);
  assert.equal(late.leak, "");

  const atStop = orders.subscribe(async (_, { signal }: Delivery) => {
    const asleep = setTimeout(() => {}, 3_600_000);
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    clearTimeout(asleep);
    while (Date.now() < 1e9);
  });
  const stopped = await failureOf({ subscription: atStop });
  assert.equal(stopped.error, "");
  assert.equal(stopped.leak, `${BUSY}time_test.ts`);
});

Deno.test("a loop in a timer's callback is told once, by what has moved the clock", async () => {
  const subscription = orders.subscribe(async function wait() {
    await new Promise<void>((resolve) => {
      setTimeout(resolve, 5);
      setTimeout(function loop() {
        while (Date.now() < 10);
      }, 5);
    });
  });
  const { error, leak } = await failureOf({
    subscription,
    test: async (app) => {
      await app.publish(orders, { order: 7 });
      const told = await app.advance(5).catch((error) => error);
      await app.advance(5).catch(() => assert.fail("It is told twice"));
      throw told;
    },
  });
  assert.equal(error.slice(0, BUSY.length), BUSY);
  assert.match(error.slice(BUSY.length), /loop time_test\.ts$/);
  assert.equal(leak, "");
});

Deno.test("a handler that takes long, but asks for the time seldom, is not in the way", async () => {
  const subscription = orders.subscribe(() => {
    for (let asked = 0; asked < 5_000; asked++) Date.now();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    for (let asked = 0; asked < 4_000; asked++) Date.now();
  });
  const { error, leak } = await failureOf({ subscription });
  assert.deepEqual([error, leak], ["", ""]);
});

Deno.test("a handler that asks for the time often, but not for long, is not in the way", async () => {
  const subscription = orders.subscribe(() => {
    for (let asked = 0; asked < 100_000; asked++) Date.now();
  });
  const { error, leak } = await failureOf({ subscription, patience: 5_000 });
  assert.deepEqual([error, leak], ["", ""]);
});

Deno.test("a handler that polls by timers of 0 ms is named with the place", async () => {
  const subscription = orders.subscribe(async function poll() {
    while (Date.now() < 10) await new Promise((resolve) => setTimeout(resolve, 0));
  });
  const { error, leak } = await failureOf({
    subscription,
    test: async (app) => {
      await app.publish(orders, { order: 7 });
      await app.advance({ seconds: 1 });
    },
  });
  const endless =
    `FakeTimeError: Cannot move the virtual clock beyond 1970-01-01T00:00:00.000Z: it ` +
    `fired 10000 timers at one instant and another is due; end the loop that creates them, poll ` +
    `less often (pollInterval), or give a higher limit; the next was created by the handler of ` +
    `message 1 of queue "orders" here:\n    at time_test.ts\n    at poll time_test.ts`;
  assert.equal(error.replace(/\n +at new Promise.*/, ""), endless);
  assert.equal(leak.replace(/\n +at new Promise.*/, ""), endless);
});

Deno.test("a message that is retried for ever is named, at once or after a delay", async () => {
  const atOnce = await failureOf({ subscription: orders.subscribe(() => retry()) });
  assert.equal(
    atOnce.error,
    `FakeTimeError: Cannot let the app come to rest: 10000 deliveries started at one instant, ` +
      `the last one message 1 of queue "orders", attempt 10000; retry after a delay, give its ` +
      `subscription maxAttempts, or publish less`,
  );
  const delayed = await failureOf({
    subscription: orders.subscribe(() => retryAfter({ minutes: 1 })),
    test: async (app) => {
      await app.publish(orders, { order: 7 });
      await app.drain();
    },
  });
  assert.equal(
    delayed.error,
    `FakeTimeError: Cannot drain the app: 10000 deliveries have ended and messages are left, the ` +
      `last was message 1 of queue "orders", attempt 10001, which ended as retryAfter; give its ` +
      `subscription maxAttempts, or the drain a limit or an end by until`,
  );
  assert.deepEqual([atOnce.leak, delayed.leak], ["", ""]);
});
