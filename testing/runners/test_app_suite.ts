import assert from "node:assert/strict";
import { ack, retryAfter } from "@holdfast/inbox";
import { sqlite } from "@holdfast/inbox/sqlite";
import { LeakError, TestApp } from "@holdfast/inbox/testing";
import { type NapHandler, type NapService, napService } from "./nap_service.ts";
import type { TestRunner } from "./test_runner.ts";

/** Tests of an app on virtual time that every test runner has to pass. */
export function testAppSuite({ describe, it, beforeEach, afterEach }: TestRunner): void {
  describe("an app that each test starts anew", () => {
    let service: NapService;
    let app: TestApp;
    beforeEach(async () => {
      service = onSqlite();
      app = await TestApp.start(service.app, { now: 0 });
    });
    afterEach(async () => void await app.stop());

    it("keeps a lease of one minute through a job of five", async () => {
      await app.publish(service.queue, { minutes: 5 });
      await app.advance({ minutes: 4, seconds: 59 });
      assert.equal(app.deliveries[0]?.endedAt, undefined);
      await app.advance({ seconds: 1 });
      app.subscriber(service.subscription).assertCalledOnce().assertSettled(ack());
      const renewals = app.trace.entries.filter(({ event }) => event.type === "renewed");
      assert.ok(renewals.length >= 9, String(app.trace));
    });

    it("begins with an empty database and at the same instant", async () => {
      assert.equal(app.time.now, 0);
      await app.publish(service.queue, { minutes: 1 });
      await app.settled();
      assert.equal(app.deliveries.length, 1);
      assert.equal(app.time.elapsed, 60_000);
    });
  });

  it("two apps at once have a clock each", async () => {
    const ends = await Promise.all([1, 30].map(async (minutes) => {
      const { app, queue } = onSqlite();
      const test = await TestApp.start(app, { now: 0 });
      try {
        await test.publish(queue, { minutes });
        await test.settled();
        return test.time.elapsed;
      } finally {
        await test.stop();
      }
    }));
    assert.deepEqual(ends, [60_000, 1_800_000]);
  });

  it("a retry comes back at its virtual time", async () => {
    const starts: number[] = [];
    const service = onSqlite((_, { attempt }) => {
      starts.push(Date.now());
      return attempt === 1 ? retryAfter({ hours: 1 }) : ack();
    });
    const app = await TestApp.start(service.app, { now: 0 });
    await app.publish(service.queue, { minutes: 0 });
    await app.advance({ hours: 2 });
    await app.stop();
    assert.equal(starts[0], 0);
    assert.ok(starts[1]! >= 3_600_000 && starts[1]! < 3_602_000, String(starts));
  });

  it("all that tells or takes time is virtual in a handler, and real in the test", async () => {
    const seen: Record<string, unknown> = {};
    const service = onSqlite(async () => {
      await sleep(60_000);
      seen.setTimeout = Date.now();
      seen.setInterval = await threeTicks();
      const signal = AbortSignal.timeout(10_000);
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      seen.reason = signal.reason.name;
      seen.Date = new Date().toISOString();
      seen.performance = performance.now();
      if (hasTemporal) seen.Temporal = `${Temporal.Now.instant()}`;
    });
    const app = await TestApp.start(service.app, { now: 0 });
    const before = [Date.now(), performance.now()];
    await app.publish(service.queue, { minutes: 0 });
    await app.settled();
    await sleep(1);
    const passed = [Date.now(), performance.now()].map((now, index) => now - before[index]!);
    await app.stop();
    assert.deepEqual(seen, {
      setTimeout: 60_000,
      setInterval: 63_000,
      reason: "TimeoutError",
      Date: "1970-01-01T00:01:13.000Z",
      performance: 73_000,
      ...(hasTemporal ? { Temporal: "1970-01-01T00:01:13Z" } : {}),
    });
    assert.ok(passed.every((ms) => ms >= 0 && ms < 60_000), String(passed));
  });

  it("the globals are as before once the app has stopped", async () => {
    const before = globals();
    const app = await TestApp.start(onSqlite().app);
    assert.notDeepEqual(globals(), before);
    await app.stop();
    assert.deepEqual(globals(), before);
  });

  it("a timer that a handler leaves behind is a leak, with its place", async () => {
    const service = onSqlite(() => leaveTimer());
    const app = await TestApp.start(service.app);
    await app.publish(service.queue, { minutes: 0 });
    await assert.rejects(app.stop(), (error: unknown) => {
      assert.ok(error instanceof LeakError, String(error));
      assert.match(error.message, /a timer \(setInterval\) of message 1 of queue "naps" /);
      assert.match(error.message, /at (Module\.)?leaveTimer .*test_app_suite\.ts:\d+/);
      return true;
    });
  });
}

function onSqlite(handler?: NapHandler): NapService {
  return napService(sqlite(":memory:"), handler);
}

function leaveTimer(): void {
  setInterval(() => {}, 1_000);
}

function threeTicks(): Promise<number> {
  return new Promise((resolve) => {
    let ticks = 0;
    const interval = setInterval(() => {
      if (++ticks < 3) return;
      clearInterval(interval);
      resolve(Date.now());
    }, 1_000);
  });
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** All that hands out time, as it is defined now. */
function globals(): unknown[] {
  const holders: [object, string[]][] = [
    [globalThis, ["setTimeout", "setInterval", "clearTimeout", "clearInterval", "Date", "fetch"]],
    [Date.prototype, ["constructor"]],
    [Performance.prototype, ["now"]],
    [AbortSignal, ["timeout"]],
    [hasTemporal ? Temporal.Now : {}, ["instant", "plainDateISO", "zonedDateTimeISO"]],
  ];
  return holders.flatMap(([holder, names]) =>
    names.map((name) => Object.getOwnPropertyDescriptor(holder, name))
  );
}

const hasTemporal = typeof Temporal !== "undefined";
