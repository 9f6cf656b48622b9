import assert from "node:assert/strict";
import {
  ack,
  App,
  Broker,
  type Delivery,
  type Driver,
  FakeTimeError,
  inbox,
  json,
  type Outcome,
  type SubscribeOptions,
  type Subscription,
  TestApp,
} from "./holdfast.ts";
import { FULL_TABLES, type FullInbox } from "./full_service.ts";
import { type FormTest, inEachForm } from "./in_each_form.ts";
import type { Job } from "./lease_service.ts";
import { queueOf, rolesService, subscribe } from "./roles_service.ts";
import { sleep } from "./sleep.ts";
import type { Session } from "../../src/driver/driver.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

type Handle = (job: Job, delivery: Delivery<number, true>) => Promise<Outcome | void>;

/** A transactional handler for several messages at once. */
function handles(table: FullInbox, handle: Handle): Subscription<Job> {
  // Where there is one writer a transaction may be open for half a lease.
  const lease = table.form === "lease" ? { lease: { hours: 4 } } : {};
  const all: SubscribeOptions<typeof table.form, "jobs"> & { readonly transactional: true } = {
    transactional: true,
    pollInterval: { minutes: 10 },
    workers: 5,
    ...lease,
  };
  return table.queue("jobs").subscribe(all, handle) as Subscription<Job>;
}

async function start(
  database: TestDatabase,
  table: FullInbox,
  ...subscriptions: readonly Subscription<Job>[]
): Promise<TestApp> {
  const driver = database.connect();
  const test = await TestApp.start(rolesService(driver, table, ...subscriptions));
  await test.query("CREATE TABLE counters (id INTEGER PRIMARY KEY, n INTEGER)");
  await test.query("INSERT INTO counters (id, n) VALUES (1, 0)");
  return test;
}

/** One sleeps while it holds a lock that others wait for. */
const tests: readonly FormTest[] = [
  {
    name: "a handler that waits for the row of one that sleeps for an hour comes next",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const jobs = handles(table, async ({ name }, delivery) => {
        const change = name === "first" ? "n + 1" : "n * 10";
        await database.write(delivery, `UPDATE counters SET n = ${change} WHERE id = 1`);
        if (name === "first") await sleep(HOUR);
        return ack();
      });
      await using test = await start(database, table, jobs);
      const begun = test.time.elapsed;
      await test.publish(queueOf(table, "jobs"), { name: "first" });
      await test.publish(queueOf(table, "jobs"), { name: "second" });
      await test.settled();
      test.subscriber(jobs).assertCalled(2).assertSettled(ack());
      assert.equal(Number((await test.query("SELECT n FROM counters"))[0]?.n), 10);
      assert.deepEqual(await test.query("SELECT id FROM jobs"), []);
      assert(test.time.elapsed - begun < HOUR + 5_000, `it took ${test.time.elapsed - begun} ms`);
    },
  },
  {
    name: "a publish that waits for the key of a handler that sleeps for an hour comes next",
    forms: ["lease"],
    async run(database, form) {
      const table = FULL_TABLES[form];
      const published = new Map<string, { readonly inserted: boolean; readonly at: number }>();
      const jobs = handles(table, async ({ name }, delivery) => {
        const replies = table.queue("replies");
        const { inserted } = await delivery.publish(replies, { name }, { uniqueKey: "k" });
        published.set(name, { inserted, at: Date.now() });
        if (name === "first") await sleep(HOUR);
        return ack();
      });
      await using test = await start(database, table, jobs);
      await test.publish(queueOf(table, "jobs"), { name: "first" });
      await test.publish(queueOf(table, "jobs"), { name: "second" });
      await test.advance({ minutes: 61 });
      const [first, second] = ["first", "second"].map((name) => published.get(name)!);
      assert.deepEqual([first?.inserted, second?.inserted], [true, false]);
      assert(second!.at - first!.at >= HOUR, `it came after ${second!.at - first!.at} ms`);
      test.subscriber(jobs).assertCalled(2).assertSettled(ack());
    },
  },
  {
    name: "handlers that wait for one another's row, and sleep, have it in turn",
    forms: ["lease"],
    async run(database, form) {
      const table = FULL_TABLES[form];
      const jobs = handles(table, async (_, delivery) => {
        await database.write(delivery, "UPDATE counters SET n = n + 1 WHERE id = 1");
        await sleep(60_000);
        return ack();
      });
      await using test = await start(database, table, jobs);
      const names = ["a", "b", "c", "d", "e"];
      for (const name of names) await test.publish(queueOf(table, "jobs"), { name });
      await test.settled();
      test.subscriber(jobs).assertCalled(5).assertSettled(ack());
      assert.equal(Number((await test.query("SELECT n FROM counters"))[0]?.n), 5);
      assert(test.time.elapsed >= 5 * 60_000, `it took ${test.time.elapsed} ms`);
      assert(test.time.elapsed < 6 * 60_000, `it took ${test.time.elapsed} ms`);
    },
  },
];

const countedWaits: ConformanceTest = {
  name: "a driver counts the statements that wait for locks of others, and only those",
  async run(database) {
    await using driver = await opened(database);
    await using holder = await sessionOf(driver);
    await using waiter = await sessionOf(driver);
    await holder.query("CREATE TABLE counters (id INTEGER PRIMARY KEY, n INTEGER)");
    await holder.query("INSERT INTO counters (id, n) VALUES (1, 0)");
    const statements = ["UPDATE counters SET n = n * 10"];
    // There tables have locks of their own.
    if (!driver.hasOneWriter) statements.push("ALTER TABLE counters ADD COLUMN more INTEGER");
    for (const statement of statements) {
      await holder.begin();
      await holder.query("UPDATE counters SET n = n + 1");
      assert.equal(await driver.countLockWaits!(), 0);
      const waiting = waiter.query(statement);
      waiting.catch(() => {});
      await untilCount(driver, 1);
      await holder.commit();
      await waiting;
      await untilCount(driver, 0);
    }
  },
};

async function opened(database: TestDatabase): Promise<Driver & AsyncDisposable> {
  const driver = database.connect();
  await driver.open();
  return Object.assign(driver, { [Symbol.asyncDispose]: () => driver.close() });
}

async function sessionOf(driver: Driver): Promise<Session & AsyncDisposable> {
  const session = await driver.session();
  return Object.assign(session, { [Symbol.asyncDispose]: () => session.release() });
}

/** Servers tell how it was a moment ago. */
async function untilCount(driver: Driver, count: number): Promise<void> {
  let found: number | undefined;
  for (let tries = 0; found !== count; tries++) {
    assert(tries < 50, `${found} statements wait, not ${count}`);
    await sleep(150);
    found = await driver.countLockWaits!();
  }
}

const slowStatement: ConformanceTest = {
  name: "a statement that takes longer than the patience is named, and the app can be stopped",
  needs: "a server",
  async run(database) {
    const slow = `SELECT id, attempt, payload, ${database.sql.sleep!(7)} FROM jobs WHERE id = :id`;
    const table = inbox("jobs", {
      id: "id",
      attempt: "attempt",
      lockedUntil: "locked_until",
      payload: json<Job>("payload"),
    }, { statements: { fetch: slow } });
    const jobs = table.queue().subscribe(() => ack());
    const broker = new Broker(database.connect()).createTables(table).include(jobs);
    const app = new App({ name: "suite" }).withBroker(broker);
    const test = await TestApp.start(app, { patience: 2_000 });
    await assert.rejects(test.publish(table.queue(), { name: "a" }), (error: unknown) => {
      assert(error instanceof FakeTimeError);
      assert.equal(error.reason, "stuck");
      assert.match(error.message, /SELECT id, attempt, payload, .*SLEEP\(7\).* \(\d+ ms\)/i);
      assert.match(
        error.message,
        /nothing waits for a lock there: make it faster, or give a longer patience$/,
      );
      return true;
    });
    await test.stop();
  },
};

const foreignLock: ConformanceTest = {
  name: "a statement that waits for a lock that no delivery holds is named after the patience",
  needs: "connections",
  async run(database) {
    const table = FULL_TABLES.lease;
    const [driver, other] = [database.connect(), database.connect()];
    const jobs = subscribe(table, "jobs", () => ack());
    await using test = await TestApp.start(rolesService(driver, table, jobs), { patience: 1_500 });
    await other.open();
    const session = await other.session();
    try {
      await session.begin();
      await session.query("DELETE FROM jobs");
      await session.query(
        "INSERT INTO jobs (queue, unique_key, attempt, payload) VALUES ('jobs', 'k', 1, '{}')",
      );
      const publish = test.publish(queueOf(table, "jobs"), { name: "a" }, { uniqueKey: "k" });
      await assert.rejects(publish, (error: unknown) => {
        assert(error instanceof FakeTimeError);
        assert.match(
          error.message,
          /(INSERT|BEGIN).* \(\d+ ms\).*; [12] waits? for locks there/,
        );
        return true;
      });
    } finally {
      await session.release();
      await other.close();
    }
  },
};

const HOUR = 3_600_000;

/** What virtual time promises where statements wait, or take long. */
export const virtualTimeTests: readonly ConformanceTest[] = [
  ...inEachForm(tests),
  countedWaits,
  slowStatement,
  foreignLock,
];
