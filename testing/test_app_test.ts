import assert from "node:assert/strict";
import { ack, App, Broker, DeclarationError, inbox, json, retry, state } from "../mod.ts";
import type { Subscription } from "../mod.ts";
import { sqlite } from "../src/sqlite/mod.ts";
import { FakeTimeError } from "./fake_time.ts";
import { LeakError } from "./leak_error.ts";
import { TestApp } from "./test_app.ts";

const jobs = inbox("jobs", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: json<{ minutes: number }>("payload"),
});
const queue = jobs.queue("jobs");

Deno.test("TestApp: a hundred runs give one trace", async () => {
  const traces = new Set<string>();
  for (let run = 0; run < 100; run++) traces.add(await traceOfRun());
  assert.equal(traces.size, 1);
  const [trace] = traces;
  assert.match(trace!, /\+30\.000 s {2}jobs: renewed 1, 2, 3\n/);
  assert.match(trace!, /\+300\.000 s {2}jobs: settled 1 \(attempt 1\) as ack/);
});

Deno.test("TestApp: one test body passes on virtual and on real time", async () => {
  for (const start of [TestApp.start, TestApp.startLive]) {
    const work = queue.subscribe(async () => {
      await sleep(100);
      return ack();
    });
    await using app = await start(serviceOf(work));
    await app.publish(queue, { minutes: 0 });
    app.subscriber(work).assertCalledOnce();
    await app.advance({ milliseconds: 200 });
    app.subscriber(work).assertSettled(ack());
    await app.publish(queue, { minutes: 0 });
    await app.settled();
    assert.deepEqual(app.subscriber(work).outcomes(), [ack(), ack()]);
  }
});

Deno.test("TestApp: Date and timers are virtual in a handler, and real in the test", async () => {
  const seen: number[] = [];
  const work = queue.subscribe(async ({ minutes }) => {
    seen.push(Date.now());
    await sleep(minutes * 60_000);
    seen.push(Date.now());
  });
  await using app = await TestApp.start(serviceOf(work), { now: Date.UTC(2030, 0, 1) });
  const before = Date.now();
  await app.publish(queue, { minutes: 60 });
  await app.advance({ hours: 1 });
  assert.deepEqual(seen, [Date.UTC(2030, 0, 1), Date.UTC(2030, 0, 1, 1)]);
  assert(Date.now() - before < 60_000);
});

Deno.test("TestApp: listeners of the signal run in the app's time, whoever aborts", async () => {
  let lateAt = 0;
  const work = queue.subscribe((_, { signal }) =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, 3_600_000);
      signal.addEventListener("abort", () => {
        clearTimeout(timer);
        setTimeout(() => {
          lateAt = Date.now();
          resolve();
        }, 1_000);
      });
    })
  );
  const app = await TestApp.start(serviceOf(work), { now: 0 });
  await app.publish(queue, { minutes: 0 });
  await app.stop();
  assert.equal(lateAt, 45_000);
});

Deno.test("TestApp: a state replaces what the hook sets, and skips nothing else", async () => {
  const mailer = state<string>("mailer");
  const seen: string[] = [];
  const work = queue.subscribe((_, delivery) => {
    seen.push(delivery.get(mailer));
  });
  const app = serviceOf(work).onStartup((app) => {
    seen.push("hook");
    app.set(mailer, "real");
  });
  await using test = await TestApp.start(app, { state: [mailer.with("fake")] });
  await test.publish(queue, { minutes: 0 });
  assert.deepEqual(seen, ["hook", "fake"]);
});

Deno.test("TestApp: an assertion that fails shows what happened instead", async () => {
  const work = queue.subscribe(() => ack());
  const app = await TestApp.start(serviceOf(work));
  await app.publish(queue, { minutes: 1 });
  assert.throws(() => app.subscriber(work).assertCalled(2), (error: unknown) => {
    assert(error instanceof assert.AssertionError);
    assert.match(error.message, /queue "jobs": 2 calls of its handler, but found: 1/);
    assert.match(error.message, /jobs: settled 1 \(attempt 1\) as ack/);
    return true;
  });
  const subscriber = app.subscriber(work);
  assert.throws(() => subscriber.assertReceived({ minutes: 2 }), assert.AssertionError);
  assert.throws(() => subscriber.assertSettled(retry()), assert.AssertionError);
  assert.throws(() => subscriber.assertNotCalled(), assert.AssertionError);
  assert.throws(() => app.subscriber(queue.subscribe(() => {})), DeclarationError);
  await app.stop();
});

Deno.test("TestApp: a timer that a handler leaves behind is a leak, with its place", async () => {
  const work = queue.subscribe(() => {
    setInterval(() => {}, 1_000);
  });
  const app = await TestApp.start(serviceOf(work));
  await app.publish(queue, { minutes: 0 });
  await assert.rejects(app.stop(), (error: unknown) => {
    assert(error instanceof LeakError);
    assert.match(error.message, /a timer \(setInterval\).*test_app_test\.ts/s);
    return true;
  });
});

Deno.test("TestApp: a start that fails leaves the globals as they were", async () => {
  const original = globalThis.setTimeout;
  const work = queue.subscribe(() => {});
  const app = new App({ name: "test" }).withBroker(new Broker(sqlite(":memory:")).include(work));
  await assert.rejects(TestApp.start(app), /the table does not exist/);
  assert.equal(globalThis.setTimeout, original);
});

Deno.test("TestApp: a handler on a file waits in real time by itself", async () => {
  const work = queue.subscribe(async () => {
    await Deno.readTextFile(new URL(import.meta.url));
    return ack();
  });
  await using app = await TestApp.start(serviceOf(work));
  await app.publish(queue, { minutes: 0 });
  app.subscriber(work).assertSettled(ack());
  assert.equal(app.time.elapsed, 0);
});

Deno.test("TestApp: a message that is retried for ever at one instant is an error, not a hang", async () => {
  const app = await TestApp.start(serviceOf(queue.subscribe(() => retry())));
  await assert.rejects(app.publish(queue, { minutes: 0 }), (error: unknown) => {
    assert(error instanceof FakeTimeError);
    assert.match(error.message, /10000 deliveries started at one instant.*queue "jobs"/);
    return true;
  });
  await app.stop();
});

Deno.test("TestApp: an app whose handler hangs can be stopped, and the handler is reported", async () => {
  const work = queue.subscribe(() => new Promise<void>(() => {}));
  const app = await TestApp.start(serviceOf(work), { patience: 20 });
  await assert.rejects(app.publish(queue, { minutes: 0 }), FakeTimeError);
  await assert.rejects(app.stop(), (error: unknown) => {
    assert(error instanceof LeakError);
    assert.match(error.message, /the handler of message 1 of queue "jobs"/);
    return true;
  });
});

Deno.test("TestApp: a drain goes on beyond the time in which the database cannot be reached", async () => {
  const work = queue.subscribe({ lease: { minutes: 1 } }, async ({ minutes }) => {
    await sleep(minutes * 60_000);
    return ack();
  });
  await using app = await TestApp.start(serviceOf(work));
  await app.publish(queue, { minutes: 2 });
  await app.disconnect({ for: { minutes: 5 } });
  const { outcomes } = await app.drain();
  assert.deepEqual(outcomes, { ack: 1 });
  assert(app.time.elapsed >= 5 * 60_000);
});

Deno.test("TestApp: the port of an app that crashed is free, also with a request in flight", async () => {
  const arrived = Promise.withResolvers<void>();
  let port = 0;
  const onListen = (address: { readonly port: number }) => port = address.port;
  const app = serviceOf(queue.subscribe(() => {}));
  app.serve({ hostname: "127.0.0.1", port: 0, onListen }, () => {
    arrived.resolve();
    return new Promise<Response>(() => {});
  });
  await using one = await TestApp.start(app);
  const request = fetch(`http://127.0.0.1:${port}/`).then((response) => response.text(), () => {});
  await arrived.promise;
  await one.crash();
  await request;
  Deno.listen({ hostname: "127.0.0.1", port }).close();
  await using two = await TestApp.join(one, app);
  await two.publish(queue, { minutes: 0 });
  const health = await fetch(`http://127.0.0.1:${port}/readyz`);
  assert.equal(health.status, 200, await health.text());
});

Deno.test("TestApp: the clock outlives a crash of the app that started it, and all that join", async () => {
  const app = serviceOf(queue.subscribe(() => {}));
  await using first = await TestApp.start(app);
  await first.crash();
  for (let restarts = 0; restarts < 2; restarts++) {
    {
      await using stopped = await TestApp.join(first, app);
      await stopped.publish(queue, { minutes: 0 });
    }
    await using crashed = await TestApp.join(first, app);
    await crashed.crash();
  }
  await first.time.advance(1);
});

Deno.test("TestApp: whatever a handler throws, the row is settled and the trace says what", async () => {
  const trap = new Proxy({}, {
    getPrototypeOf: () => {
      throw new Error("a trap");
    },
  });
  const thrown = [undefined, null, "text", 5n, Symbol("s"), Object.create(null), trap];
  const work = queue.subscribe(({ minutes }) => {
    throw thrown[minutes];
  });
  await using app = await TestApp.start(serviceOf(work));
  for (const minutes of thrown.keys()) await app.publish(queue, { minutes });
  assert(app.deliveries.every(({ settled, error }) => settled && error instanceof Error));
  assert.match(String(app.trace), /The handler of queue "jobs" threw "text"; throw an Error/);
});

Deno.test("TestApp: a settle that the handler does not wait for is the outcome all the same", async () => {
  const work = queue.subscribe((_, delivery) => void delivery.settle(retry()));
  const app = await TestApp.start(serviceOf(work), { limit: 10 });
  await app.publish(queue, { minutes: 0 }).catch(() => {});
  assert.equal(app.deliveries[0]?.outcome?.kind, "retry");
  assert.equal(app.deliveries[0]?.settled, true);
  await app.stop();
});

async function traceOfRun(): Promise<string> {
  const work = queue.subscribe({ workers: 3, lease: { minutes: 1 } }, async (job, delivery) => {
    await sleep(job.minutes * 60_000);
    if (job.minutes === 2 && delivery.attempt < 3) throw new Error("No luck");
  });
  await using app = await TestApp.start(serviceOf(work), { now: 0 });
  for (const minutes of [5, 2, 1, 3]) await app.publish(queue, { minutes });
  await app.advance({ minutes: 30 });
  return String(app.trace);
}

function serviceOf(subscription: Subscription<{ minutes: number }, "lease", number, "jobs">): App {
  const broker = new Broker(sqlite(":memory:")).createTables(jobs).include(subscription);
  return new App({ name: "test" }).withBroker(broker);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

Deno.test("TestApp: what is left at the end of a test that has failed does not hide why", async () => {
  const printed: unknown[] = [];
  const { error: print } = console;
  console.error = (...values: unknown[]) => printed.push(...values);
  try {
    await assert.rejects(failAndLeak(), /2 calls of its handler, but found: 1/);
  } finally {
    console.error = print;
  }
  assert.match(String(printed), /has stopped but left:\n- a timer \(setInterval\)/);
});

async function failAndLeak(): Promise<void> {
  const work = queue.subscribe(() => void setInterval(() => {}, 1_000));
  await using app = await TestApp.start(serviceOf(work));
  await app.publish(queue, { minutes: 0 });
  app.subscriber(work).assertCalled(2);
}
