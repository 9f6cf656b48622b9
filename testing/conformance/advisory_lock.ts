import assert from "node:assert/strict";
import { checkTables } from "../../src/check/check_tables.ts";
import { createTables } from "../../src/check/create_tables.ts";
import { AdvisoryLockForm } from "../../src/claim/advisory_lock.ts";
import { Pool } from "../../src/pool.ts";
import {
  ack,
  App,
  Broker,
  type Driver,
  type Inbox,
  inbox,
  json,
  retry,
  type Subscription,
  TestApp,
} from "./holdfast.ts";
import { databaseNow } from "../../src/clock.ts";
import { advisoryLockService, type Job, keyedJobs } from "./lease_service.ts";
import { rowsOf } from "./rows.ts";
import { sessionLossTests } from "./session_loss.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

/** A table in which rows of one account have one key. */
const accounts: Inbox<Job, Job, "advisory lock", undefined, "payouts"> = inbox(
  "payouts",
  { id: "id", payload: json<Job>("payload") },
  { advisoryLock: "accounts-{account}" },
);
/** Another table with the same key. */
const refunds: Inbox<Job, Job, "advisory lock", undefined, "refunds"> = inbox(
  "refunds",
  { id: "id", payload: json<Job>("payload") },
  { advisoryLock: "accounts-{account}" },
);

/** What the advisory lock form promises. */
const tests: readonly ConformanceTest[] = [
  {
    name: "retry frees the row at once as the next attempt, ack deletes it",
    async run(database) {
      const { app, queue, subscription } = advisoryLockService(
        database.connect(),
        (_, { attempt }) => attempt === 1 ? retry() : ack(),
      );
      await using test = await TestApp.start(app);
      await test.publish(queue, { name: "a" });
      assert.deepEqual(test.deliveries.map(({ attempt }) => attempt), [1, 2]);
      assert.deepEqual(test.subscriber(subscription).outcomes(), [retry(), ack()]);
      assert.deepEqual(await rowsOf(test), []);
      await assertUnlocked(test, database, "jobs-1");
    },
  },
  {
    name: "n workers run n keys side by side, and one row of a key at a time, in order",
    async run(database) {
      const inWork = new Map<string, number>();
      const names: string[] = [];
      let most = 0;
      const payouts = accounts.queue().subscribe({ workers: 3 }, async ({ name }) => {
        const account = name[0]!;
        inWork.set(account, (inWork.get(account) ?? 0) + 1);
        assert.equal(inWork.get(account), 1);
        most = Math.max(most, [...inWork.values()].reduce((sum, n) => sum + n, 0));
        await sleep(1_000);
        inWork.set(account, 0);
        names.push(name);
      });
      await using test = await TestApp.start(accountService(database.connect(), payouts));
      for (const name of ["a1", "a2", "b1", "a3", "b2", "c1", "d1"]) {
        const columns = { account: name[0]! };
        await test.publish(accounts.queue(), { name }, { columns });
      }
      await test.advance({ seconds: 4 });
      assert.equal(most, 3);
      assert.deepEqual(names.filter((name) => name.startsWith("a")), ["a1", "a2", "a3"]);
      assert.deepEqual(names.toSorted(), ["a1", "a2", "a3", "b1", "b2", "c1", "d1"]);
      assert(test.deliveries.every(({ settled }) => settled));
      for (const key of ["a", "b", "c", "d"]) {
        await assertUnlocked(test, database, `accounts-${key}`);
      }
    },
  },
  {
    name: "keys of any length and writing are told apart, by case too",
    async run(database) {
      const keys = ["a".repeat(200), "a".repeat(199), "Ab", "aB", "💶", "", "'quoted'"];
      const payouts = accounts.queue().subscribe({ workers: keys.length }, () => sleep(1_000));
      await using test = await TestApp.start(accountService(database.connect(), payouts));
      for (const account of keys) {
        await test.publish(accounts.queue(), { name: account }, { columns: { account } });
      }
      assert.equal(test.deliveries.length, keys.length);
      await test.advance({ seconds: 2 });
      assert(test.deliveries.every(({ settled }) => settled));
    },
  },
  {
    name: "two tables with the same key share its lock",
    async run(database) {
      let inWork = 0;
      let most = 0;
      const handle = async (): Promise<void> => {
        most = Math.max(most, ++inWork);
        await sleep(1_000);
        inWork--;
      };
      const one = accounts.queue().subscribe({ pollInterval: 300 }, handle);
      const two = refunds.queue().subscribe({ pollInterval: 300 }, handle);
      await using test = await TestApp.start(accountService(database.connect(), one, two));
      const columns = { account: "a" };
      for (const queue of [accounts.queue(), refunds.queue()]) {
        for (let n = 0; n < 3; n++) await test.publish(queue, { name: `${n}` }, { columns });
      }
      await test.advance({ seconds: 12 });
      assert.equal(test.deliveries.length, 6);
      assert.equal(most, 1);
    },
  },
  {
    name: "rows of a key that is held for long do not keep the rows behind them waiting",
    async run(database) {
      const names: string[] = [];
      const payouts = accounts.queue().subscribe(
        { workers: 2, pollInterval: 100 },
        async ({ name }) => {
          names.push(name);
          if (name === "held") await sleep(3_600_000);
        },
      );
      await using test = await TestApp.start(accountService(database.connect(), payouts));
      await test.publish(accounts.queue(), { name: "held" }, { columns: { account: "a" } });
      const row = `('{"name":"waits"}', 'a')`;
      const rows = Array.from({ length: 1_200 }, () => row).join(",");
      await test.query(`INSERT INTO payouts (payload, account) VALUES ${rows}`);
      await test.publish(accounts.queue(), { name: "free" }, { columns: { account: "b" } });
      await test.advance({ seconds: 2 });
      assert.deepEqual(names, ["held", "free"]);
      await test.query("DELETE FROM payouts");
      await test.advance({ hours: 1 });
      const [held] = test.deliveries;
      assert.equal(held?.settled, false, "its row was deleted by another");
    },
  },
  {
    name: "a row that no handler has seen is given back with its attempt, and its lock",
    async run(database) {
      const driver = database.connect();
      const pool = new Pool(driver);
      await pool.open();
      try {
        await createTables(driver, pool, [keyedJobs]);
        const use = { inbox: keyedJobs, subscription: undefined };
        const facts = (await checkTables(driver, pool, [use])).get(keyedJobs)!;
        const { description } = keyedJobs;
        const statements = driver.dialect.advisoryLock(description, facts, { clock: "database" });
        const form = new AdvisoryLockForm({
          queue: "jobs",
          pool,
          statements,
          now: databaseNow,
          endConnection: undefined,
        });
        const insert = { text: `INSERT INTO jobs (payload) VALUES ('{"name":"a"}')`, params: [] };
        await pool.query(insert, undefined);
        const [first] = await form.claim(1);
        assert.equal(first!.attempt, 1);
        assert.deepEqual(await form.claim(1), []);
        await first!.release();
        const [second] = await form.claim(1);
        assert.equal(second!.attempt, 1);
        await second!.settle({ kind: "free" });
        const [third] = await form.claim(1);
        assert.equal(third!.attempt, 2);
        await third!.settle({ kind: "remove", acked: true });
      } finally {
        await pool.close();
      }
    },
  },
  ...sessionLossTests({
    form: "advisory lock",
    service: advisoryLockService,
    next: { attempt: 2, name: "next attempt" },
    afterwards: (test, database) => assertUnlocked(test, database, "jobs-1"),
  }),
  {
    name: "a row held by one process is passed over by another",
    needs: "a server",
    async run(database) {
      const first = advisoryLockService(database.connect(), () => sleep(10_000));
      const second = advisoryLockService(database.connect(), () => ack());
      await using test = await TestApp.start(first.app);
      await test.publish(first.queue, { name: "held" });
      await using other = await TestApp.join(test, second.app);
      await other.publish(second.queue, { name: "free" });
      other.subscriber(second.subscription).assertCalledOnce().assertReceived({ name: "free" });
      await test.advance({ seconds: 11 });
      test.subscriber(first.subscription).assertCalledOnce().assertSettled(ack());
      assert.deepEqual(await rowsOf(other), []);
    },
  },
];

function accountService(driver: Driver, ...subscriptions: readonly Subscription<Job>[]): App {
  const broker = new Broker(driver).createTables(accounts, refunds, keyedJobs)
    .include(...subscriptions);
  return new App({ name: "suite" }).withBroker(broker);
}

async function assertUnlocked(
  test: TestApp,
  { sql: { locks } }: TestDatabase,
  key: string,
): Promise<void> {
  if (locks === undefined) return;
  const [row] = await test.query(locks(key));
  assert.equal(Number(row?.held), 0, `The key ${key} is still locked`);
}

/** The tests, for every database. */
export const advisoryLockTests: readonly ConformanceTest[] = tests.map((test) => ({
  ...test,
  name: `advisory lock: ${test.name}`,
}));
