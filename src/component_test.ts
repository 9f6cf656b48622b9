import assert from "node:assert/strict";
import { App } from "./app.ts";
import { Broker } from "./broker.ts";
import type { Component } from "./component.ts";
import { DeclarationError, ShutdownError } from "./errors.ts";
import { inbox } from "./inbox.ts";
import { sqlite } from "./sqlite/mod.ts";
import { text } from "./text.ts";

function logging(name: string, log: string[], more: Partial<Component> = {}): Component {
  return {
    name,
    start: () => void log.push(`${name} start`),
    stop: () => void log.push(`${name} stop`),
    close: () => void log.push(`${name} close`),
    ...more,
  };
}

Deno.test("components start in order, stop together, and close in reverse, within the hooks", async () => {
  const log: string[] = [];
  const app = new App({ name: "app" })
    .withComponent(logging("a", log))
    .withComponent(logging("b", log))
    .onStartup(() => void log.push("onStartup"))
    .afterStartup(() => void log.push("afterStartup"))
    .onShutdown(() => void log.push("onShutdown"))
    .afterShutdown(() => void log.push("afterShutdown"));
  await (await app.start()).stop();
  assert.deepEqual(log, [
    "onStartup",
    "a start",
    "b start",
    "afterStartup",
    "onShutdown",
    "a stop",
    "b stop",
    "b close",
    "a close",
    "afterShutdown",
  ]);
});

Deno.test("a component that does not start ends the start, and what had started is stopped", async () => {
  const log: string[] = [];
  const app = new App({ name: "app" })
    .withComponent(logging("a", log))
    .withComponent(logging("b", log, {
      start() {
        throw new Error("No port");
      },
    }));
  await assert.rejects(app.start(), /component "b" did not start: No port/);
  assert.deepEqual(log, ["a start", "a stop", "b stop", "b close", "a close"]);
  assert.equal(app.isReady, false);
});

Deno.test("a component that is still at work when the drain ends is told so", async () => {
  let reason: unknown;
  const app = new App({ name: "app", drain: 50, abortTimeout: 1_000 }).withComponent({
    name: "slow",
    stop: (signal) =>
      new Promise((resolve) =>
        signal.addEventListener("abort", () => {
          reason = signal.reason;
          resolve();
        })
      ),
  });
  const report = await (await app.start()).stop();
  assert(reason instanceof ShutdownError);
  assert.equal(report.aborted, true);
});

Deno.test("a shutdown goes on whatever fails, and its report says what did", async () => {
  const app = new App({ name: "app", closeTimeout: 50 })
    .withComponent({
      name: "a",
      stop() {
        throw new Error("stuck");
      },
    })
    .withComponent({ name: "b", close: () => new Promise(() => {}) })
    .onShutdown(() => {
      throw new Error("no hook");
    });
  const { failures } = await (await app.start()).stop();
  assert.deepEqual(failures, [
    "A hook of onShutdown failed: no hook",
    'Component "a" was not stopped: stuck',
    'Component "b" was not closed: it took too long',
  ]);
});

Deno.test("a component that hangs does not keep databases from being closed", async () => {
  const jobs = inbox("jobs", { id: "id", lockedUntil: "locked_until", payload: text("payload") });
  const broker = new Broker(sqlite(":memory:")).createTables(jobs);
  const app = new App({ name: "app", closeTimeout: 100, drain: 100, abortTimeout: 100 })
    .withBroker(broker)
    .withComponent({
      name: "hangs",
      stop: () => new Promise(() => {}),
      close: () => new Promise(() => {}),
    });
  for (let round = 1; round <= 2; round++) {
    const { failures } = await (await app.start()).stop();
    assert.deepEqual(failures.map((each) => each.slice(0, 38)), [
      'Component "hangs" was not stopped: it ',
      'Component "hangs" was not closed: it t',
    ]);
  }
});

Deno.test("a start that hangs is given up when the app is stopped, and nothing is left open", async () => {
  const jobs = inbox("jobs", { id: "id", lockedUntil: "locked_until", payload: text("payload") });
  const broker = new Broker(sqlite(":memory:")).createTables(jobs);
  const app = new App({ name: "app", drain: 50, abortTimeout: 50, closeTimeout: 50 })
    .withBroker(broker)
    .withComponent({ name: "hangs", start: () => new Promise(() => {}) });
  const starting = app.start();
  starting.catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 50));
  await app.stop();
  await assert.rejects(starting, /component "hangs" has not come to an end/);
  await using again = await broker.connect();
  void again;
});

Deno.test("hooks share the time of their phase", async () => {
  const hangs = () => new Promise<void>(() => {});
  const app = new App({ name: "app", drain: 100, abortTimeout: 100, closeTimeout: 100 });
  for (let n = 0; n < 5; n++) app.onShutdown(hangs).afterShutdown(hangs);
  const begin = performance.now();
  const { failures } = await (await app.start()).stop();
  assert.equal(failures.length, 10);
  assert(performance.now() - begin < 450);
});

Deno.test("a component has a name of its own", () => {
  const app = new App({ name: "app" }).withComponent({ name: "a" });
  assert.throws(() => app.withComponent({ name: "a" }), DeclarationError);
  assert.throws(() => app.withComponent({ name: "" }), DeclarationError);
});
