import assert from "node:assert/strict";
import { ack, TestApp } from "./holdfast.ts";
import { leaseService } from "./lease_service.ts";
import { rowsOf } from "./rows.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

/** What a claim in the lease form promises. */
export const leaseClaimTests: readonly ConformanceTest[] = [
  {
    name:
      "a claim writes the expiry, a whole second, and counts the attempt before the handler runs",
    async run(database) {
      const { app, queue } = leaseService(database.connect(), () => sleep(10_000));
      await using test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      const [row] = await rowsOf(test);
      assert.equal(row?.lockedUntil, (Math.floor(test.time.now / 1000) + 1 + 60) * 1000);
      assert.equal(row.attempt, 2);
      assert.equal(test.deliveries[0]?.attempt, 1);
    },
  },
  {
    name:
      "a row that another process holds comes back when its lease ends, not before, as attempt 2",
    async run(database) {
      const { app, queue, subscription } = leaseService(database.connect(), () => ack());
      await using test = await TestApp.start(app);
      await leftBehind(test, database, 1_000n, 90_000);
      await test.publish(queue, { name: "b" });
      assert.deepEqual(test.subscriber(subscription).received(), [{ name: "b" }]);

      await test.advance({ milliseconds: 89_999 });
      test.subscriber(subscription).assertCalledOnce();
      await test.advance({ milliseconds: 1_200 });
      test.subscriber(subscription).assertCalled(2).assertReceived({ name: "left behind" });
      assert.equal(test.deliveries[1]?.attempt, 2);
    },
  },
  {
    name: "ended leases come first, in order of expiry, then free rows in order of id",
    async run(database) {
      const { app, queue, subscription } = leaseService(database.connect(), () => ack());
      await using test = await TestApp.start(app);
      using hold = test.time.hold();
      await leftBehind(test, database, 10n, -1_000);
      await leftBehind(test, database, 11n, -3_000);
      await leftBehind(test, database, 12n, -2_000);
      const published = await Promise.all(
        [1, 2, 3].map((n) => app.publish(queue, { name: `free ${n}` })),
      );
      hold[Symbol.dispose]();
      await test.settled();
      assert.deepEqual(
        test.deliveries.map(({ id }) => id),
        [11n, 12n, 10n, ...published.map(({ id }) => BigInt(id)).toSorted(ascending)],
      );
      test.subscriber(subscription).assertCalled(6);
    },
  },
  {
    name: "as many handlers as workers run side by side, and a free worker waits for no other",
    async run(database) {
      const { app, queue, subscription } = leaseService(
        database.connect(),
        ({ name }) => sleep(name === "long" ? 20_000 : 1_000),
        { workers: 3 },
      );
      await using test = await TestApp.start(app);
      await test.publish(queue, { name: "long" });
      for (let n = 0; n < 20; n++) await test.publish(queue, { name: "short" });
      assert.equal(test.deliveries.length, 3);
      await test.advance({ seconds: 10 });
      assert.equal(test.deliveries.filter(({ endedAt }) => endedAt !== undefined).length, 20);
      await test.advance({ seconds: 10 });
      test.subscriber(subscription).assertCalled(21);
    },
  },
  {
    name: "several apps on one database share the rows, each handled once",
    needs: "connections",
    async run(database) {
      const handle = (): Promise<void> => sleep(50);
      const first = leaseService(database.connect(), handle, { workers: 4 });
      const second = leaseService(database.connect(), handle, { workers: 4 });
      const third = leaseService(database.connect(), handle, { workers: 4 });
      await using test = await TestApp.start(first.app);
      await using secondTest = await TestApp.join(test, second.app);
      await using thirdTest = await TestApp.join(test, third.app);
      for (let n = 0; n < 200; n++) await first.app.publish(first.queue, { name: `${n}` });
      for (let n = 0; n < 60; n++) await test.advance({ seconds: 1 });
      const handled = [test, secondTest, thirdTest].map(({ deliveries }) => deliveries);
      assert.deepEqual(await rowsOf(test), []);
      assert.equal(new Set(handled.flat().map(({ id }) => id)).size, 200);
      assert.equal(handled.flat().length, 200);
    },
  },
  {
    name: "an id above 2^53 is exact from claim to settle, and its neighbour untouched",
    async run(database) {
      const { app } = leaseService(database.connect(), () => ack());
      await using test = await TestApp.start(app);
      await leftBehind(test, database, 2n ** 53n, 600_000);
      await leftBehind(test, database, 2n ** 53n + 1n, -1_000);
      await test.advance({ seconds: 2 });
      assert.deepEqual(test.deliveries.map(({ id, settled }) => [id, settled]), [
        [2n ** 53n + 1n, true],
      ]);
      assert.deepEqual((await rowsOf(test)).map(({ id }) => id), [2n ** 53n]);
    },
  },
  {
    name: "a claim that fails is tried again until the database answers",
    async run(database) {
      const { app, queue, subscription } = leaseService(database.connect(), () => ack());
      await using test = await TestApp.start(app);
      await test.query("ALTER TABLE jobs RENAME TO jobs_away");
      await test.advance({ seconds: 30 });
      await test.query("ALTER TABLE jobs_away RENAME TO jobs");
      await test.publish(queue, { name: "a" });
      await test.advance({ seconds: 60 });
      test.subscriber(subscription).assertCalledOnce().assertSettled(ack());
    },
  },
];

function ascending(one: bigint, other: bigint): number {
  return Number(one - other);
}

/** A row as another process left it: claimed once, its lease ending so many milliseconds from now. */
async function leftBehind(
  test: TestApp,
  { sql }: TestDatabase,
  id: bigint,
  untilEnd: number,
): Promise<void> {
  const end = Math.floor(test.time.now / 1000) * 1000 + untilEnd;
  await test.query(
    `INSERT INTO jobs (id, payload, attempt, locked_until)
     VALUES (${id}, '{"name":"left behind"}', 2, ${sql.time(end)})`,
  );
}
