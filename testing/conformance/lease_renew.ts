import assert from "node:assert/strict";
import { ack, LeaseLostError, TestApp } from "./holdfast.ts";
import { leaseService } from "./lease_service.ts";
import { rowsOf } from "./rows.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest } from "./test_database.ts";

/** What renewing promises. */
export const leaseRenewTests: readonly ConformanceTest[] = [
  ...[true, false].map((counted): ConformanceTest => ({
    name: `a five-minute handler keeps a one-minute lease ${counted ? "with" : "without"} attempts`,
    async run(database) {
      const { app, queue, subscription } = leaseService(
        database.connect(),
        () => sleep(300_000),
        { counted },
      );
      await using test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      await test.advance({ minutes: 5 });
      test.subscriber(subscription).assertCalledOnce().assertSettled(ack());
      assert.equal(renewalsOf(test).length, 9);
      assert.deepEqual(renewalsOf(test).map(({ elapsed }) => elapsed / 1000), [
        ...[30, 60, 90, 120, 150, 180, 210, 240, 270],
      ]);
    },
  })),
  {
    name: "a renewal moves the expiry and nothing else",
    async run(database) {
      const { app, queue } = leaseService(database.connect(), () => sleep(40_000));
      await using test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      const [before] = await rowsOf(test);
      await test.advance({ seconds: 30 });
      const [after] = await rowsOf(test);
      assert.deepEqual(after, { ...before, lockedUntil: before!.lockedUntil! + 30_000 });
    },
  },
  {
    name: "one keeper renews every lease of its subscription together",
    async run(database) {
      const { app, queue } = leaseService(database.connect(), () => sleep(100_000), {
        workers: 10,
      });
      await using test = await TestApp.start(app);
      for (let n = 0; n < 10; n++) await test.publish(queue, { name: `${n}` });
      await test.advance({ seconds: 100 });
      assert.deepEqual(
        renewalsOf(test).map(({ event }) => event.type === "renewed" && event.ids.length),
        [10, 10, 10],
      );
      assert(test.deliveries.every(({ settled }) => settled));
    },
  },
  ...[true, false].map((counted): ConformanceTest => ({
    name: `a settle at the very moment of a renewal succeeds ${
      counted ? "with" : "without"
    } attempts`,
    async run(database) {
      const { app, queue, subscription } = leaseService(
        database.connect(),
        async () => {
          for (let n = 0; n < 30; n++) await sleep(1_000);
        },
        { counted, workers: 5 },
      );
      await using test = await TestApp.start(app);
      for (let n = 0; n < 20; n++) await test.publish(queue, { name: `${n}` });
      await test.advance({ minutes: 3 });
      test.subscriber(subscription).assertCalled(20);
      assert(test.deliveries.every(({ settled }) => settled));
    },
  })),
  ...[true, false].map((counted): ConformanceTest => ({
    name: `a lease that is not renewed is lost when it ends ${
      counted ? "with" : "without"
    } attempts`,
    async run(database) {
      const reasons: unknown[] = [];
      const { app, queue, subscription } = leaseService(
        database.connect(),
        async (_, { signal }) => {
          await untilAborted(signal, 90_000);
          if (signal.aborted) reasons.push(signal.reason);
        },
        { counted },
      );
      await using test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      test.pauseRenewals();
      await test.advance({ seconds: 60 });
      assert.equal(test.deliveries[0]?.endedAt, undefined);
      await test.advance({ seconds: 1 });
      assert(reasons[0] instanceof LeaseLostError);
      assert(test.deliveries[0]?.error instanceof LeaseLostError); // its ack changed nothing
      assert.equal(test.deliveries[0].settled, false);

      test.resumeRenewals();
      await test.advance({ minutes: 3 });
      test.subscriber(subscription).assertCalled(2).assertSettled(ack());
      assert.equal(test.deliveries[1]?.attempt, counted ? 2 : undefined);
    },
  })),
  {
    name: "renewals that fail for less than a lease cost nothing",
    async run(database) {
      const { app, queue, subscription } = leaseService(database.connect(), () => sleep(200_000));
      await using test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      for (let n = 0; n < 4; n++) {
        test.pauseRenewals();
        await test.advance({ seconds: 45 });
        test.resumeRenewals();
        await test.advance({ seconds: 5 });
      }
      test.subscriber(subscription).assertCalledOnce().assertSettled(ack());
    },
  },
  {
    name: "a row that another claim took is noticed at the next renewal, and only that one",
    async run(database) {
      const { app, queue } = leaseService(
        database.connect(),
        (_, { signal }) => untilAborted(signal, 50_000),
        { workers: 3 },
      );
      await using test = await TestApp.start(app);
      for (let n = 0; n < 3; n++) await test.publish(queue, { name: `${n}` });
      const taken = test.deliveries[1]!;
      await test.query(
        `UPDATE jobs SET locked_until = ${database.sql.later(600)}, attempt = attempt + 1
         WHERE id = ${taken.id}`,
      );
      await test.advance({ seconds: 30 });
      assert(taken.error instanceof LeaseLostError);
      await test.advance({ seconds: 20 });
      assert.deepEqual(test.deliveries.map(({ settled }) => settled), [true, false, true]);
      assert.deepEqual((await rowsOf(test)).map(({ id }) => id), [taken.id]);
    },
  },
];

function renewalsOf(test: TestApp): TestApp["trace"]["entries"] {
  return test.trace.entries.filter(({ event }) => event.type === "renewed");
}

/** Resolves when the signal aborts, or after that long. */
function untilAborted(signal: AbortSignal, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
