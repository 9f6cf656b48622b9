import assert from "node:assert/strict";
import { createRequire } from "node:module";
import * as nodeTimers from "node:timers";
import sleeps from "node:timers/promises";
import { promisify } from "node:util";
import { DeclarationError } from "../src/errors.ts";
import { FakeTime } from "./fake_time.ts";
import { intervalDelay, timeoutDelay } from "./timer_patches.ts";

const START = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

function globals(): unknown[] {
  return [
    ...[setTimeout, setInterval, clearTimeout, clearInterval, Date, Date.prototype.constructor],
    ...[performance.now, AbortSignal.timeout, fetch, Temporal.Now.instant],
    ...[Temporal.Now.plainDateISO, Temporal.Now.zonedDateTimeISO],
  ];
}

Deno.test("the first clock installs, the last one restores", () => {
  const before = globals();
  const descriptor = Object.getOwnPropertyDescriptor(globalThis, "setTimeout");
  const first = new FakeTime();
  const during = globals();
  const second = new FakeTime();
  assert.deepEqual(during.map((each, index) => each === before[index]), before.map(() => false));
  first[Symbol.dispose]();
  assert.deepEqual(globals(), during);
  second[Symbol.dispose]();
  assert.ok(globals().every((each, index) => each === before[index]));
  assert.deepEqual(Object.getOwnPropertyDescriptor(globalThis, "setTimeout"), descriptor);
});

Deno.test("Date is faithful", () => {
  const HostDate = Date;
  const before = new Date();
  using time = new FakeTime({ now: START });
  class Stamp extends Date {
    readonly kind = "stamp";
  }
  time.run(() => {
    assert.equal(new Date().getTime(), START);
    assert.equal(Date.now(), START);
    assert.equal(Date(), new HostDate(START).toString());
    assert.equal(new Date(7).getTime(), 7);
    assert.equal(new Date(2020, 1).getTime(), new HostDate(2020, 1).getTime());
    assert.equal(new Date("2020-02-03T00:00:00Z").toJSON(), "2020-02-03T00:00:00.000Z");
    assert.equal(new Date(undefined as unknown as number).getTime(), NaN);
    const stamp = new Stamp();
    assert.deepEqual([stamp.getTime(), stamp.kind], [START, "stamp"]);
    assert.ok(stamp instanceof Stamp && stamp instanceof Date);
    assert.ok(structuredClone(new Date()) instanceof Date);
  });
  assert.ok(before instanceof Date && new Date() instanceof HostDate);
  assert.equal(before.constructor, Date);
  assert.equal(Object.prototype.toString.call(new Date()), "[object Date]");
  assert.deepEqual([Date.name, Date.length, Date.now.name], ["Date", 7, "now"]);
  assert.equal(Date.UTC(2020), HostDate.UTC(2020));
  assert.equal(Date.parse, HostDate.parse);
  assert.ok(Math.abs(Date.now() - HostDate.now()) < 1_000);
  assert.ok(Math.abs(new Date().getTime() - HostDate.now()) < 1_000);
});

Deno.test("a fraction of a millisecond shows in no Date", async () => {
  using time = new FakeTime({ now: START });
  await time.advance(0.5);
  assert.equal(time.run(() => Date.now()), START);
  assert.equal(time.run(() => new Date().getTime()), START);
  assert.equal(time.run(() => performance.now()), 0.5);
});

Deno.test("performance.now counts from the clock's start", async () => {
  using time = new FakeTime();
  const host = performance.now();
  await time.advance(60_000);
  assert.equal(time.run(() => performance.now()), 60_000);
  assert.ok(performance.now() - host < 30_000);
});

Deno.test("Temporal.Now is virtual inside", () => {
  using time = new FakeTime({ now: START });
  time.run(() => {
    assert.equal(Temporal.Now.instant().epochMilliseconds, START);
    assert.equal(Temporal.Now.zonedDateTimeISO("Asia/Tokyo").hour, 12);
    assert.equal(Temporal.Now.zonedDateTimeISO().timeZoneId, Temporal.Now.timeZoneId());
    assert.equal(`${Temporal.Now.plainDateISO("UTC")}`, "2026-01-02");
    assert.equal(`${Temporal.Now.plainTimeISO("UTC")}`, "03:04:05.678");
    assert.equal(`${Temporal.Now.plainDateTimeISO("UTC")}`, "2026-01-02T03:04:05.678");
  });
  assert.ok(Temporal.Now.instant().epochMilliseconds > START);
});

Deno.test("AbortSignal.timeout follows the virtual clock", async () => {
  using time = new FakeTime();
  const signal = time.run(() => AbortSignal.timeout(60_000));
  assert.equal(signal.aborted, false);
  await time.advance(60_000);
  assert.equal(signal.reason.name, "TimeoutError");
  assert.throws(() => time.run(() => AbortSignal.timeout(-1)), TypeError);
  assert.throws(() => AbortSignal.timeout(-1), TypeError);
});

Deno.test("a virtual timer can be cleared from outside, in every form", async () => {
  using time = new FakeTime();
  const make = () => time.run(() => setTimeout(() => assert.fail("fired"), 1));
  clearTimeout(make());
  clearInterval(make());
  clearTimeout(+make());
  clearTimeout(String(+make()) as unknown as number);
  make().close();
  time.run(() => clearTimeout(make()));
  clearTimeout(undefined);
  assert.equal(time.pending.length, 0);
  await time.advance(5);
});

Deno.test("a real timer can be cleared from inside", async () => {
  using time = new FakeTime();
  const real = setTimeout(() => assert.fail("fired"), 1);
  time.run(() => clearTimeout(real));
  await new Promise((resolve) => setTimeout(resolve, 5));
});

Deno.test("delays are taken as real timers take them", () => {
  for (const none of [undefined, null, 0, -5, NaN, "x", -Infinity]) {
    assert.equal(timeoutDelay(none), 0);
    assert.equal(intervalDelay(none), 1);
  }
  assert.equal(timeoutDelay("20"), 20);
  assert.equal(timeoutDelay(1.9), 1);
  assert.equal(timeoutDelay(2 ** 31 - 1), 2 ** 31 - 1);
  assert.equal(timeoutDelay(2 ** 31), 1);
  assert.equal(timeoutDelay(Infinity), 1);
});

Deno.test("promisified timers are virtual inside and real outside", async () => {
  using time = new FakeTime();
  const wait = promisify(setTimeout);
  const inside = time.run(() => wait(60_000, "inside"));
  assert.equal(await wait(1, "outside"), "outside");
  await time.advance(60_000);
  assert.equal(await inside, "inside");
});

Deno.test("the functions of node:timers, as a required module has them, are virtual inside", async () => {
  const timers = createRequire(import.meta.url)("node:timers") as typeof nodeTimers;
  const before = { ...timers };
  {
    using time = new FakeTime();
    const fired: number[] = [];
    time.run(() => {
      timers.setTimeout(() => fired.push(time.elapsed), 60_000);
      timers.clearTimeout(timers.setTimeout(() => assert.fail("fired"), 1));
      const interval = timers.setInterval(() => {
        fired.push(time.elapsed);
        if (fired.length === 2) timers.clearInterval(interval);
      }, 20_000);
    });
    await time.advance(90_000);
    assert.deepEqual(fired, [20_000, 40_000, 60_000]);
    await new Promise((resolve) => timers.setTimeout(resolve, 1));
    assert.equal(time.elapsed, 90_000);
  }
  assert.deepEqual({ ...timers }, before);
});

Deno.test("the functions of node:timers/promises are virtual inside and real outside", async () => {
  const before = { ...sleeps };
  {
    using time = new FakeTime();
    const inside = time.run(async () => {
      assert.equal(await sleeps.setTimeout(60_000, "slept"), "slept");
      await sleeps.scheduler.wait(30_000);
      const ticks: number[] = [];
      for await (const value of sleeps.setInterval(1_000, "tick")) {
        assert.equal(value, "tick");
        ticks.push(time.elapsed);
        if (ticks.length === 1) await sleeps.setTimeout(2_500);
        if (ticks.length === 4) return ticks;
      }
    });
    assert.equal(await sleeps.setTimeout(1, "outside"), "outside");
    await sleeps.scheduler.wait(1);
    for await (const _ of sleeps.setInterval(1)) break;
    assert.equal(time.elapsed, 0);
    await time.advance(120_000);
    assert.deepEqual(await inside, [91_000, 93_500, 93_500, 94_000]);
    assert.deepEqual(time.pending, []);
  }
  assert.deepEqual({ ...sleeps }, before);
});

Deno.test("an abort ends a virtual sleep of node:timers/promises as it ends a real one", async () => {
  using time = new FakeTime();
  const abort = new AbortController();
  const { signal } = abort;
  const options = { signal };
  const errors: unknown[] = [];
  const keep = (error: unknown) => void errors.push(error);
  sleeps.setTimeout(60_000, undefined, options).catch(keep);
  time.run(() => {
    sleeps.setTimeout(60_000, undefined, options).catch(keep);
    sleeps.scheduler.wait(60_000, options).catch(keep);
    promisify(setTimeout)(60_000, undefined, options).catch(keep);
    sleeps.setInterval(60_000, undefined, options)[Symbol.asyncIterator]().next().catch(keep);
  });
  await time.quiet();
  assert.equal(time.pending.length, 4);
  abort.abort(new Error("enough"));
  await time.quiet();
  time.run(() => void sleeps.setTimeout(60_000, undefined, options).catch(keep));
  await time.quiet();
  assert.deepEqual(time.pending, []);
  assert.equal(errors.length, 6);
  for (const error of errors) {
    assert.ok(error instanceof Error);
    assert.deepEqual([error.name, Reflect.get(error, "code")], ["AbortError", "ABORT_ERR"]);
    assert.equal(error.cause, signal.reason);
  }
});

Deno.test("a sleep of node:timers/promises may be one that keeps no process alive", async () => {
  using time = new FakeTime();
  time.run(() => {
    void sleeps.setTimeout(1, undefined, { ref: false });
    void sleeps.setTimeout(2);
  });
  assert.deepEqual(time.pending.map(({ refed }) => refed), [false, true]);
  await time.advance(2);
});

Deno.test("setImmediate, queueMicrotask and, on Deno, named imports of node:timers stay real", async () => {
  using time = new FakeTime();
  await time.run(() => new Promise((resolve) => setImmediate(resolve)));
  await time.run(() => new Promise<void>((resolve) => queueMicrotask(resolve)));
  await time.run(() => new Promise((resolve) => nodeTimers.setTimeout(resolve, 1)));
  assert.equal(time.elapsed, 0);
});

Deno.test("a stub of fetch is called, before and after the clock starts", async () => {
  const host = globalThis.fetch;
  const stub = (text: string) => () => Promise.resolve(new Response(text));
  try {
    globalThis.fetch = stub("earlier");
    using time = new FakeTime();
    const get = async () => await (await fetch("https://example.com")).text();
    assert.equal(await time.run(get), "earlier");
    assert.equal(await get(), "earlier");
    globalThis.fetch = stub("later");
    assert.equal(await time.run(get), "later");
  } finally {
    globalThis.fetch = host;
  }
});

Deno.test("a global that somebody replaced is refused by name, and nothing is installed", () => {
  const host = globalThis.clearInterval;
  const before = globals();
  try {
    globalThis.clearInterval = () => {};
    assert.throws(() => new FakeTime(), (error: Error) => {
      assert.ok(error instanceof DeclarationError);
      assert.match(error.message, /the global clearInterval is already replaced/);
      return true;
    });
    assert.equal(setTimeout, before[0]);
  } finally {
    globalThis.clearInterval = host;
  }
  new FakeTime()[Symbol.dispose]();
});

Deno.test("what replaced a global while the clock ran is left alone", () => {
  const HostDate = Date;
  const time = new FakeTime();
  const RoutedDate = Date;
  const stub = class extends RoutedDate {} as DateConstructor;
  globalThis.Date = stub;
  time[Symbol.dispose]();
  assert.equal(Date, stub);
  globalThis.Date = RoutedDate;
  new FakeTime()[Symbol.dispose]();
  assert.equal(Date, HostDate);
});

for (
  const [name, fake] of Object.entries({
    Date: "globalThis.Date = class extends Date {}",
    setTimeout: "globalThis.setTimeout = () => 1",
  })
) {
  Deno.test(`a ${name} that was faked before this module loaded is refused`, async () => {
    const module = JSON.stringify(import.meta.resolve("./fake_time.ts"));
    const code = `${fake}; const { FakeTime } = await import(${module});
      try { new FakeTime() } catch (error) { console.log(error.message) }`;
    const args = ["eval", "--no-config", "--no-lock", code];
    const { stdout } = await new Deno.Command(Deno.execPath(), { args }).output();
    const text = new TextDecoder().decode(stdout);
    assert.match(text, new RegExp(`^Cannot start a FakeTime: the global ${name} is already`));
  });
}
