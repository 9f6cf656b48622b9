import assert from "node:assert/strict";
import { inDelivery, inRealTime, now, random, sleep } from "../src/clock.ts";
import { ClosedError } from "../src/errors.ts";
import { FakeTime } from "./fake_time.ts";

const START = Date.UTC(2026, 0, 1);
const realSleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

Deno.test("the clock starts at a whole second, and does not move by itself", async () => {
  using time = new FakeTime();
  assert.equal(time.now % 1_000, 0);
  assert.ok(Date.now() - time.now < 2_000);
  const before = time.now;
  await realSleep(5);
  assert.equal(time.now, before);
});

Deno.test("advance fires what is due up to its end, that instant included", async () => {
  using time = new FakeTime({ now: new Date(START) });
  const fired: number[] = [];
  time.run(() => {
    for (const ms of [0, 999, 1_000, 1_001]) setTimeout(() => fired.push(time.elapsed), ms);
  });
  await time.advance({ seconds: 1 });
  assert.deepEqual(fired, [0, 999, 1_000]);
  assert.equal(time.now, START + 1_000);
  await time.advanceTo(new Date(START + 5_000));
  assert.equal(time.elapsed, 5_000);
  assert.deepEqual(fired, [0, 999, 1_000, 1_001]);
});

Deno.test("a time in the past, an invalid one and a negative length are refused", async () => {
  using time = new FakeTime({ now: START });
  await assert.rejects(time.advanceTo(START - 1), RangeError);
  await assert.rejects(time.advanceTo(new Date(NaN)), RangeError);
  await assert.rejects(time.advance(-1), RangeError);
  assert.throws(() => new FakeTime({ now: NaN }), RangeError);
  assert.equal(time.elapsed, 0);
});

Deno.test("calls of advance queue: each starts where the one before has ended", async () => {
  using time = new FakeTime();
  const ends: number[] = [];
  const moves = [100, 20, 3].map((ms) => time.advance(ms).then(() => ends.push(time.elapsed)));
  await Promise.all(moves);
  assert.deepEqual(ends, [100, 120, 123]);
});

Deno.test("an interval of 0 leaves its instant", async () => {
  using time = new FakeTime();
  const ticks: number[] = [];
  time.run(() => setInterval(() => ticks.push(time.elapsed), 0));
  await time.advance(3);
  assert.deepEqual(ticks, [1, 2, 3]);
});

Deno.test("code outside keeps real time while code inside is virtual", async () => {
  using time = new FakeTime({ now: START });
  using other = new FakeTime({ now: START + 86_400_000 });
  const inside = time.run(async () => {
    await sleep(60_000);
    return now();
  });
  const beside = other.run(async () => {
    await sleep(1_000);
    return now();
  });
  const before = Date.now();
  await realSleep(10);
  assert.ok(Date.now() - before >= 9);
  await time.advance(60_000);
  assert.equal(await inside, START + 60_000);
  assert.equal(other.elapsed, 0);
  assert.equal(other.pending.length, 1);
  await other.advance(1_000);
  assert.equal(await beside, START + 86_401_000);
  assert.equal(time.run(() => other.run(now)), other.now);
  assert.equal(time.run(() => time.track(() => Promise.resolve(now()))) instanceof Promise, true);
  assert.ok(await time.run(() => inRealTime(() => Promise.resolve(now()))) > START);
});

Deno.test("the clock stands still while it is held", async () => {
  using time = new FakeTime();
  time.run(() => setTimeout(() => {}, 1));
  const hold = time.hold();
  const second = time.hold();
  let ended = false;
  const move = time.advance(10).then(() => ended = true);
  await realSleep(10);
  hold[Symbol.dispose]();
  hold[Symbol.dispose]();
  await realSleep(10);
  assert.deepEqual([ended, time.elapsed], [false, 0]);
  second[Symbol.dispose]();
  await move;
  assert.equal(time.elapsed, 10);
});

Deno.test("an error in a timer's callback ends the advance at that instant", async () => {
  using time = new FakeTime();
  time.run(() => {
    setTimeout(() => {
      throw new TypeError("from the callback");
    }, 5);
  });
  await assert.rejects(time.advance(10), /from the callback/);
  assert.equal(time.elapsed, 5);
  await time.advance(10);
  assert.equal(time.elapsed, 15);
});

Deno.test("a runaway clock becomes an error that shows where its timers come from", async () => {
  using time = new FakeTime({ limit: 50 });
  const again = () => void setTimeout(again, 0);
  time.run(again);
  await assert.rejects(time.advance(1), /it fired 50 timers at one instant.*\n +at .*again/);
  assert.equal(time.elapsed, 0);
});

Deno.test("an interval may run long, but never makes the app idle", async () => {
  using time = new FakeTime({ limit: 50 });
  let ticks = 0;
  const interval = time.run(() => setInterval(() => ticks++, 1_000));
  await time.advance({ minutes: 5 });
  assert.equal(ticks, 300);
  await assert.rejects(time.runUntilIdle(), /it fired 50 timers in one call/);
  await assert.rejects(time.advance({ hours: 24 }), /it fired 5000 timers in one call/);
  clearInterval(interval);
  time.run(() => setTimeout(() => setTimeout(() => ticks = 0, 20), 10));
  const before = time.elapsed;
  await time.runUntilIdle();
  assert.deepEqual([ticks, time.elapsed - before, time.pending.length], [0, 30, 0]);
});

async function trace(): Promise<string> {
  using time = new FakeTime({ now: START });
  const lines: string[] = [];
  const work = async (name: string) => {
    for (let step = 0; step < 5; step++) {
      await sleep(Math.floor(random() * 20));
      lines.push(`${time.elapsed} ${name} ${step}`);
    }
  };
  time.run(() => {
    setInterval(() => lines.push(`${time.elapsed} tick`), 5);
    for (const name of ["a", "b", "c"]) void inDelivery(name, () => work(name));
    void inDelivery("file", async () => {
      await sleep(3);
      await Deno.stat(new URL(import.meta.url));
      lines.push(`${time.elapsed} file`);
      await sleep(12);
      await inRealTime(() => Deno.stat(new URL(import.meta.url)));
      lines.push(`${time.elapsed} database`);
    });
  });
  await time.advance(200);
  return lines.join("\n");
}

Deno.test("100 runs give one trace", async () => {
  const traces = new Set<string>();
  for (let run = 0; run < 100; run++) traces.add(await trace());
  assert.equal(traces.size, 1);
  assert.match([...traces][0]!, /^3 file$/m);
  assert.match([...traces][0]!, /^15 database$/m);
});

Deno.test("pending timers tell what left them", async () => {
  using time = new FakeTime({ now: START });
  await time.run(() =>
    inDelivery("orders 3", function leavesTimers() {
      setTimeout(() => {}, 20);
      AbortSignal.timeout(5);
      return Promise.resolve();
    })
  );
  const shown = time.pending.map(({ kind, due, refed, delivery }) => ({
    kind,
    due,
    refed,
    delivery,
  }));
  assert.deepEqual(shown, [
    { kind: "AbortSignal.timeout", due: START + 5, refed: false, delivery: "orders 3" },
    { kind: "setTimeout", due: START + 20, refed: true, delivery: "orders 3" },
  ]);
  for (const { stack } of time.pending) {
    assert.match(stack, /^ +at (Object\.)?leavesTimers \(.*fake_time_test\.ts/);
  }
});

Deno.test("a disposed clock does not move, and its code sees the real one", async () => {
  using _other = new FakeTime();
  const time = new FakeTime({ now: START });
  time.run(() => setTimeout(() => assert.fail("fired"), 1));
  time[Symbol.dispose]();
  time[Symbol.dispose]();
  await assert.rejects(time.advance(1), ClosedError);
  assert.ok(time.run(now) > START);
  assert.equal(time.pending.length, 0);
  await time.run(() => sleep(1));
});
