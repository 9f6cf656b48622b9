import assert from "node:assert/strict";
import { ack, ShutdownError, TestApp } from "./holdfast.ts";
import { leaseService } from "./lease_service.ts";
import { rowsOf } from "./rows.ts";
import { sleep } from "./sleep.ts";
import { FULL_TABLES } from "./full_service.ts";
import { queueOf, rolesService, subscribe } from "./roles_service.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

/** How many sessions the database sees beside the one that asks, once the others have had time to go. */
async function sessionsOf(database: TestDatabase): Promise<number> {
  const driver = database.connect();
  await driver.open();
  try {
    for (let tries = 0;; tries++) {
      const session = await driver.session();
      await session.begin();
      const { rows: [row] } = await session.query(database.sql.sessions!);
      await session.release();
      const sessions = Number(row!.sessions);
      if (sessions === 0 || tries === 40) return sessions;
      await sleep(50);
    }
  } finally {
    await driver.close();
  }
}

/** What becomes of rows when the app stops. */
export const stopTests: readonly ConformanceTest[] = [
  {
    name: "stop waits for the handlers at work, and claims no more",
    needs: "connections",
    async run(database) {
      const { app, queue } = leaseService(database.connect(), () => sleep(30_000));
      const watcher = leaseService(database.connect(), () => ack());
      const test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      await test.publish(queue, { name: "b" });
      const report = await test.stop();
      assert.deepEqual(report.queues, [{ queue: "jobs", finished: 1, released: 0, aborted: 0 }]);
      assert.equal(test.deliveries.length, 1);
      assert.equal(test.time.elapsed, 30_000);
      await using next = await TestApp.start(watcher.app);
      assert.equal(next.deliveries.length, 1); // b, at once
      assert.equal(next.deliveries[0]?.attempt, 1);
    },
  },
  {
    name: "a handler that outlasts the drain is aborted, and its row free with its attempt spent",
    needs: "connections",
    async run(database) {
      const { app, queue } = leaseService(
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
      const next = leaseService(database.connect(), () => ack());
      const test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      const report = await test.stop();
      assert.equal(report.queues[0]?.aborted, 1);
      assert.equal(test.time.elapsed, 44_000);
      assert(test.deliveries[0]?.error instanceof ShutdownError);

      await using after = await TestApp.start(next.app);
      assert.equal(after.deliveries.length, 1); // at once
      assert.equal(after.deliveries[0]?.attempt, 2);
      assert.deepEqual(await rowsOf(after), []);
    },
  },
  {
    name: "an app that has stopped has no session left, and can be started again",
    needs: "a server",
    async run(database) {
      const table = FULL_TABLES["row lock"];
      const jobs = subscribe(table, "jobs", () => ack(), { workers: 3 });
      const held = table.queue("held").subscribe({ transactional: true }, () => ack());
      const app = rolesService(database.connect(), table, jobs, held as never);
      for (let round = 1; round <= 2; round++) {
        const test = await TestApp.startLive(app);
        await test.publish(queueOf(table, "jobs"), { name: "a" });
        await test.publish(queueOf(table, "held"), { name: "b" });
        while (test.deliveries.length < 2) await test.advance({ milliseconds: 50 });
        await test.stop();
        assert.equal(await sessionsOf(database), 0, `round ${round}`);
      }
    },
  },
  {
    name: "a handler at work is renewed while the app drains",
    async run(database) {
      const { app, queue } = leaseService(database.connect(), () => sleep(40_000), { lease: 10 });
      const test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      await test.stop();
      assert.equal(test.deliveries[0]?.settled, true);
      assert.equal(
        test.trace.entries.filter(({ event }) => event.type === "renewed").length,
        7,
      );
    },
  },
];
