import assert from "node:assert/strict";
import {
  ack,
  AlreadySettledError,
  drop,
  LeaseLostError,
  type Outcome,
  PayloadError,
  retry,
  TestApp,
} from "./holdfast.ts";
import { leaseService } from "./lease_service.ts";
import { type JobRow, rowsOf } from "./rows.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

/** What each outcome does to the row, and that nobody settles a row that is not theirs. */
export const leaseSettleTests: readonly ConformanceTest[] = [
  {
    name: "ack and drop delete the row",
    async run(database) {
      for (const outcome of [ack(), drop("no use")]) {
        assert.deepEqual(await rowsAfter(database, () => outcome, true), []);
      }
    },
  },
  {
    name: "a handler that returns nothing acks",
    async run(database) {
      assert.deepEqual(await rowsAfter(database, () => {}, true), []);
    },
  },
  {
    name: "retry frees the row at once, its attempt spent",
    async run(database) {
      let calls = 0;
      const { app, queue, subscription } = leaseService(
        database.connect(),
        () => ++calls < 3 ? retry() : ack(),
      );
      await using test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      assert.deepEqual(test.subscriber(subscription).outcomes(), [retry(), retry(), ack()]);
      assert.deepEqual(test.deliveries.map(({ attempt }) => attempt), [1, 2, 3]);
      assert.equal(test.time.elapsed, 0);
    },
  },
  {
    name: "retry without attempts frees the row at the next whole second, so that no token repeats",
    async run(database) {
      const expiries: (number | null)[] = [];
      const running = Promise.withResolvers<TestApp>();
      const { app, queue } = leaseService(database.connect(), async () => {
        expiries.push((await rowsOf(await running.promise))[0]!.lockedUntil);
        return expiries.length < 4 ? retry() : ack();
      }, { counted: false });
      await using test = await TestApp.start(app);
      running.resolve(test);
      await test.publish(queue, { name: "a" });
      await test.advance({ seconds: 10 });
      assert.equal(expiries.length, 4);
      assert.equal(new Set(expiries).size, 4);
    },
  },
  {
    name: "a handler that throws is called again after a growing delay",
    async run(database) {
      const { app, queue, subscription } = leaseService(database.connect(), (_, { attempt }) => {
        if (attempt! < 5) throw new Error("No luck");
      });
      await using test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      test.subscriber(subscription).assertCalledOnce().assertSettled(retry());
      const [row] = await rowsOf(test);
      assert(row!.lockedUntil! > test.time.now && row!.lockedUntil! <= test.time.now + 2_001);
      assert.equal(row!.lockedUntil! % 1000, 1); // a delay, not a lease
      await test.advance({ seconds: 60 });
      test.subscriber(subscription).assertCalled(5).assertSettled(ack());
      assert.deepEqual(test.deliveries.map(({ attempt }) => attempt), [1, 2, 3, 4, 5]);
    },
  },
  {
    name: "a handler that returns what is no outcome has failed, and says so",
    async run(database) {
      const { app, queue } = leaseService(database.connect(), () => "done" as never);
      await using test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      assert.match(String(test.deliveries[0]?.error), /returned "[^"]*" .* return ack\(\)/);
      assert.equal((await rowsOf(test)).length, 1);
    },
  },
  {
    name: "a payload that does not decode counts attempts, and the row stays",
    async run(database) {
      const { app } = leaseService(database.connect(), () => ack());
      await using test = await TestApp.start(app);
      await test.query(`INSERT INTO jobs (payload) VALUES ('{"name":')`);
      await test.advance({ seconds: 10 });
      const [first] = test.deliveries;
      assert(first?.error instanceof PayloadError);
      assert.match(first.error.message, /"jobs"\."payload" of message 1 \(queue "jobs"\)/);
      assert.equal(first.outcome?.kind, "retry");
      assert.equal((await rowsOf(test))[0]?.attempt, test.deliveries.length + 1);
      assert(test.deliveries.length > 1);
    },
  },
  {
    name: "a settled delivery is not settled again",
    async run(database) {
      const { app, queue } = leaseService(database.connect(), async (_, delivery) => {
        await delivery.settle(ack());
        await assert.rejects(delivery.settle(retry()), AlreadySettledError);
      });
      await using test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      assert.equal(test.deliveries[0]?.error, undefined);
      assert.equal(test.deliveries[0]?.outcome?.kind, "ack");
      assert.deepEqual(await rowsOf(test), []);
    },
  },
  {
    name: "an outcome returned after delivery.settle is an error, and changes nothing",
    async run(database) {
      const { app, queue } = leaseService(database.connect(), async (_, delivery) => {
        await delivery.settle(drop());
        return retry();
      });
      await using test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      assert(test.deliveries[0]?.error instanceof AlreadySettledError);
      assert.equal(test.deliveries[0].outcome?.kind, "drop");
      assert.deepEqual(await rowsOf(test), []);
    },
  },
  ...[ack(), drop(), retry()].map((outcome): ConformanceTest => ({
    name: `a late ${outcome.kind} after another claim took the row changes nothing`,
    run: (database) => settlesLate(database, outcome),
  })),
  {
    name: "a settle of a row that somebody deleted is a lost lease",
    async run(database) {
      const { app, queue } = leaseService(database.connect(), () => sleep(1_000));
      await using test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      await test.query("DELETE FROM jobs");
      await test.advance({ seconds: 1 });
      assert(test.deliveries[0]?.error instanceof LeaseLostError);
    },
  },
];

async function rowsAfter(
  database: TestDatabase,
  handle: () => Outcome | void,
  counted: boolean,
): Promise<readonly JobRow[]> {
  const { app, queue } = leaseService(database.connect(), handle, { counted });
  await using test = await TestApp.start(app);
  await test.publish(queue, { name: "a" });
  return await rowsOf(test);
}

/** Another process takes the row, which the holder has not noticed when it settles. */
async function settlesLate(database: TestDatabase, outcome: Outcome): Promise<void> {
  for (const counted of [true, false]) {
    const { app, queue } = leaseService(database.connect(), async (_, delivery) => {
      await sleep(1_000);
      await assert.rejects(delivery.settle(outcome), LeaseLostError);
      assert(delivery.signal.reason instanceof LeaseLostError);
    }, { counted });
    await using test = await TestApp.start(app);
    await test.publish(queue, { name: "a" });
    const attempt = counted ? ", attempt = attempt + 1" : "";
    await test.query(`UPDATE jobs SET locked_until = ${database.sql.later(5)}${attempt}`);
    const before = await rowsOf(test);
    await test.advance({ seconds: 1 });
    assert(test.deliveries[0]?.endedAt !== undefined);
    assert.deepEqual(await rowsOf(test), before);
    await test.query("DROP TABLE jobs");
  }
}
