import assert from "node:assert/strict";
import { ack, AlreadySettledError, DeclarationError, drop, retry, TestApp } from "./holdfast.ts";
import { rowLockService } from "./lease_service.ts";
import { rowsOf } from "./rows.ts";
import { sessionLossTests } from "./session_loss.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest } from "./test_database.ts";

/** What the row lock form promises. */
const tests: readonly Omit<ConformanceTest, "needs">[] = [
  {
    name: "ack and drop delete the row, and commit",
    async run(database) {
      const outcomes = [ack(), drop("no use")];
      const { app, queue, subscription } = rowLockService(
        database.connect(),
        ({ name }) => outcomes[Number(name)],
      );
      await using test = await TestApp.start(app);
      for (const name of ["0", "1"]) await test.publish(queue, { name });
      assert.deepEqual(test.subscriber(subscription).outcomes(), outcomes);
      assert.deepEqual(await rowsOf(test), []);
    },
  },
  {
    name: "a held row is as it was, and passed over by every other claim",
    async run(database) {
      const first = rowLockService(database.connect(), () => sleep(10_000));
      const second = rowLockService(database.connect(), () => ack());
      await using test = await TestApp.start(first.app);
      await test.publish(first.queue, { name: "held" });
      await using other = await TestApp.join(test, second.app);
      await other.publish(second.queue, { name: "free" });
      other.subscriber(second.subscription).assertCalledOnce().assertReceived({ name: "free" });
      assert.deepEqual((await rowsOf(other)).map(({ attempt }) => attempt), [1]);
      await test.advance({ seconds: 10 });
      test.subscriber(first.subscription).assertCalledOnce().assertSettled(ack());
      assert.deepEqual(await rowsOf(other), []);
    },
  },
  {
    name: "retry, and an error, count the attempt and free the row at once",
    async run(database) {
      const { app, queue, subscription } = rowLockService(database.connect(), (_, { attempt }) => {
        if (attempt === 1) return retry();
        if (attempt === 2) throw new Error("No luck");
        return ack();
      });
      await using test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      assert.deepEqual(test.deliveries.map(({ attempt }) => attempt), [1, 2, 3]);
      assert.deepEqual(test.subscriber(subscription).outcomes(), [retry(), retry(), ack()]);
      assert.equal(test.time.elapsed, 0);
      assert.deepEqual(await rowsOf(test), []);
    },
  },
  {
    name: "as many rows as workers are held, each on a connection of its own",
    async run(database) {
      const { app, queue } = rowLockService(database.connect(), () => sleep(1_000), 4);
      await using test = await TestApp.start(app);
      for (let n = 0; n < 10; n++) await test.publish(queue, { name: `${n}` });
      assert.equal(test.deliveries.length, 4);
      await test.advance({ seconds: 3 });
      assert.equal(new Set(test.deliveries.map(({ id }) => id)).size, 10);
      assert(test.deliveries.every(({ settled }) => settled));
    },
  },
  {
    name: "handlers cannot take the last connection: a pool too small is refused with the number",
    async run(database) {
      const driver = database.connect();
      const workers = driver.connections! - 1;
      const { app } = rowLockService(driver, () => ack(), workers);
      await assert.rejects(app.start(), (error: unknown) => {
        assert(error instanceof DeclarationError);
        assert.match(error.message, new RegExp(`need ${workers + 2} `));
        return true;
      });
    },
  },
  {
    name: "with every worker at work there is a connection to publish on",
    async run(database) {
      const driver = database.connect();
      const { app, queue } = rowLockService(driver, () => sleep(1_000), driver.connections! - 2);
      await using test = await TestApp.start(app);
      for (let n = 0; n < driver.connections! + 5; n++) await test.publish(queue, { name: `${n}` });
      assert.equal(test.deliveries.length, driver.connections! - 2);
      await test.advance({ seconds: 5 });
      assert.deepEqual(await rowsOf(test), []);
    },
  },
  {
    name: "a delivery is settled once",
    async run(database) {
      const { app, queue } = rowLockService(database.connect(), async (_, delivery) => {
        await delivery.settle(ack());
        await assert.rejects(delivery.settle(ack()), AlreadySettledError);
      });
      await using test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      assert.equal(test.deliveries[0]?.error, undefined);
      assert.deepEqual(await rowsOf(test), []);
    },
  },
  {
    name: "a handler that is cut short by a shutdown leaves the row as it was",
    async run(database) {
      const { app, queue } = rowLockService(
        database.connect(),
        (_, { signal }) =>
          new Promise((_, reject) => {
            const timer = setTimeout(() => {}, 3_600_000);
            signal.addEventListener("abort", () => {
              clearTimeout(timer);
              reject(signal.reason);
            });
          }),
      );
      const next = rowLockService(database.connect(), () => ack());
      const test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      await test.stop();
      await using after = await TestApp.start(next.app);
      assert.deepEqual(after.deliveries.map(({ attempt }) => attempt), [1]);
    },
  },
  ...sessionLossTests({
    form: "row lock",
    service: rowLockService,
    next: { attempt: 1, name: "same attempt" },
  }),
];

/** The tests, for the databases that have row locks. */
export const rowLockTests: readonly ConformanceTest[] = tests.map((test) => ({
  ...test,
  name: `row lock: ${test.name}`,
  needs: "row locks",
}));
