import assert from "node:assert/strict";
import { inDelivery, inRealTime, type LockObserver, sleep } from "../src/clock.ts";
import { FakeTime, type FakeTimeError } from "./fake_time.ts";
import { hostSleep, macrotask } from "./test_time.ts";

/** A database of which the test says how many statements wait for locks. */
class Database implements LockObserver {
  waits: number | undefined = 0;
  asked = 0;

  countLockWaits(): Promise<number | undefined> {
    this.asked++;
    return Promise.resolve(this.waits);
  }
}

/** A statement that is answered when the test says so. */
function statement(time: FakeTime, text: string, database: LockObserver): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = time.run(() => inRealTime(() => promise, text, database));
  return () => {
    resolve();
    return done;
  };
}

function sleeper(time: FakeTime, ms: number): Promise<void> {
  return time.run(() => inDelivery("sleeper", () => sleep(ms)));
}

function rejection(work: Promise<void>): Promise<FakeTimeError> {
  return work.then(() => assert.fail("It moved"), (error) => error);
}

Deno.test("the clock waits for I/O that is no statement, however long it takes", async () => {
  using time = new FakeTime({ patience: 20 });
  const hook = time.run(() => inRealTime(() => hostSleep(200)));
  await time.advance(10);
  assert.equal(time.elapsed, 10);
  await hook;
});

Deno.test("a statement that takes longer than the patience is named, with what is known of it", async () => {
  using time = new FakeTime({ patience: 100 });
  const database = new Database();
  const answer = statement(time, `SELECT\n  ${"long, ".repeat(100)}`, database);
  const slow = await rejection(time.advance(10));
  assert.equal(slow.reason, "stuck");
  assert.match(
    slow.message,
    /: SELECT (long, )+[a-z, ]*… \(\d+ ms\); nothing waits for a lock there/,
  );
  database.waits = 1;
  assert.match(
    (await rejection(time.advance(10))).message,
    /; 1 waits for locks there, .*: end the/,
  );
  database.waits = undefined;
  const unknown = await rejection(time.advance(10));
  assert.match(unknown.message, /a lock is not known \(its driver cannot tell\): make it faster/);
  assert.equal(time.elapsed, 0);
  await answer();
  await time.advance(10);
  assert.equal(time.elapsed, 10);
});

Deno.test("a database that does not say what it waits for is not waited for either", async () => {
  using time = new FakeTime({ patience: 10 });
  const never = Promise.withResolvers<number>();
  const answer = statement(time, "SELECT 1", { countLockWaits: () => never.promise });
  const { message } = await rejection(time.advance(10));
  assert.match(
    message,
    /not known \(there was no answer within 1000 ms; give the driver more conn/,
  );
  await answer();
  await time.advance(10);
  never.resolve(0);
});

Deno.test("a delivery that stands at a seam when its app ends holds no lock any more", async () => {
  using time = new FakeTime({ patience: 100 });
  const database = new Database();
  const app = time.forApp();
  void app.run(() => time.stand(new Promise(() => {})));
  app.end();
  const answer = statement(time, "UPDATE a", database);
  database.waits = 1;
  assert.equal((await rejection(time.advance(10))).reason, "stuck");
  await answer();
});

Deno.test("the clock moves on once all that is in flight waits for locks, and a delivery sleeps", async () => {
  using time = new FakeTime();
  const database = new Database();
  const asleep = sleeper(time, 1_000);
  const waiting = statement(time, "UPDATE a", database);
  const slow = statement(time, "UPDATE b", database);
  database.waits = 1;
  let hasMoved = false;
  const move = time.advance(500).then(() => hasMoved = true);
  await hostSleep(1_500);
  assert.deepEqual([hasMoved, database.asked > 0], [false, true], "one does not wait for a lock");
  await slow();
  await move;
  const released = asleep.then(() => {
    database.waits = 0;
    return waiting();
  });
  await time.advance(500);
  await released;
  assert.equal(time.elapsed, 1_000);
});

Deno.test("what waits for a lock does not keep the next statement from being sent", async () => {
  using time = new FakeTime();
  const database = new Database();
  const asleep = sleeper(time, 1_000);
  const waiting = statement(time, "UPDATE a", database);
  database.waits = 1;
  await time.advance(500);
  let isSent = false;
  const next = time.run(() =>
    inRealTime(
      () => {
        isSent = true;
        return Promise.resolve();
      },
      "UPDATE b",
      database,
    )
  );
  await macrotask();
  assert(isSent);
  await next;
  const released = asleep.then(() => waiting());
  await time.advance(500);
  await released;
});

Deno.test("what waited for a lock is waited for once a delivery has ended", async () => {
  using time = new FakeTime({ patience: 2_000 });
  const database = new Database();
  const asleep = sleeper(time, 1_000);
  const other = sleeper(time, 5_000);
  const waiting = statement(time, "UPDATE a", database);
  database.waits = 1;
  await time.advance(999);
  let hasMoved = false;
  const { asked } = database;
  const move = time.advance(1_000).then(() => hasMoved = true);
  await asleep;
  database.waits = 0;
  await hostSleep(500);
  assert.deepEqual([hasMoved, time.elapsed, database.asked > asked], [false, 1_000, true]);
  await waiting();
  await move;
  assert.equal(time.elapsed, 1_999);
  await time.advance(5_000);
  await other;
});

Deno.test("a handler that waits for a lock by itself is passed over likewise", async () => {
  using time = new FakeTime({ patience: 1_200 });
  const database = new Database();
  database.waits = 1;
  const { promise, resolve } = Promise.withResolvers<void>();
  const waiter = time.run(() => inDelivery("waiter", () => promise, database));
  const alone = await rejection(time.advance(10));
  assert.match(alone.message, /the delivery of waiter has waited .*; 1 waits for locks there/);
  database.waits = undefined;
  assert.match((await rejection(time.advance(10))).message, /a lock is not known \(its driver/);
  database.waits = 1;
  const asleep = sleeper(time, 1_000);
  const released = asleep.then(() => {
    database.waits = 0;
    resolve();
  });
  await time.advance(1_000);
  await Promise.all([released, waiter]);
  assert.equal(time.elapsed, 1_000);
});

Deno.test("what is given up keeps the clock no longer", async () => {
  using time = new FakeTime({ patience: 50 });
  const answer = statement(time, "SELECT 1", new Database());
  await rejection(time.advance(10));
  time.giveUp();
  await time.advance(10);
  assert.equal(time.elapsed, 10);
  const another = statement(time, "SELECT 2", new Database());
  assert.match((await rejection(time.advance(10))).message, /: SELECT 2 \(/);
  await Promise.all([answer(), another()]);
});
