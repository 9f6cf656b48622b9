import assert from "node:assert/strict";
import {
  ack,
  App,
  Broker,
  DeclarationError,
  type Driver,
  type Form,
  inbox,
  json,
  retry,
  retryAfter,
  type Subscription,
  TestApp,
} from "./holdfast.ts";
import { FULL_TABLES } from "./full_service.ts";
import { type FormTest, inEachForm } from "./in_each_form.ts";
import type { Job, JobHandler } from "./lease_service.ts";
import { queueOf, rolesService, subscribe } from "./roles_service.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

const DAY = 86_400_000;

function service(driver: Driver, form: Form, ...jobs: readonly Subscription<Job>[]): App {
  return rolesService(driver, FULL_TABLES[form], ...jobs);
}

function handles(form: Form, handle: JobHandler): Subscription<Job> {
  return subscribe(FULL_TABLES[form], "jobs", handle);
}

function secondDriver(database: TestDatabase, driver: Driver): Driver {
  return database.address === undefined ? driver : database.connect();
}

const tests: readonly FormTest[] = [
  {
    name: "a drain comes to the end of retries over days and of what is due in weeks",
    async run(database, form) {
      // What a publish leads to at once is over before the drain begins.
      const jobs = handles(form, async ({ name }, { attempt }) => {
        if (name === "fails" && attempt! < 3) throw new Error("No luck");
        if (name === "late" && attempt === 1) return retryAfter({ days: 3 });
        if (name === "long") await sleep(3_600_000);
        return ack();
      });
      await using test = await TestApp.start(service(database.connect(), form, jobs));
      const queue = queueOf(FULL_TABLES[form], "jobs");
      for (const name of ["fails", "late", "long"]) await test.publish(queue, { name });
      await test.publish(queue, { name: "weeks" }, { delay: { days: 21 } });
      const report = await test.drain();
      assert.deepEqual(report, { deliveries: 5, outcomes: { ack: 4, retry: 1 }, errors: 1 });
      assert.deepEqual(await test.query("SELECT id FROM jobs"), []);
      assert(test.time.elapsed >= 21 * DAY && test.time.elapsed < 21 * DAY + 60_000);
    },
  },
  {
    name: "a drain of an app with nothing to do returns at once",
    async run(database, form) {
      const jobs = handles(form, () => ack());
      await using test = await TestApp.start(service(database.connect(), form, jobs));
      const { elapsed } = test.time;
      const none = { deliveries: 0, outcomes: {}, errors: 0 };
      assert.deepEqual(await test.drain(), none);
      assert.deepEqual(await test.drain({ until: { days: 1 } }), none);
      // A message of no subscription's queue is nobody's to handle.
      await test.publish(queueOf(FULL_TABLES[form], "others"), { name: "a" });
      assert.deepEqual(await test.drain(), none);
      assert.equal(test.time.elapsed, elapsed);
    },
  },
  {
    name: "a drain goes no further than it is told, by a duration or a time",
    async run(database, form) {
      const jobs = handles(form, () => ack());
      await using test = await TestApp.start(service(database.connect(), form, jobs));
      const queue = queueOf(FULL_TABLES[form], "jobs");
      for (const days of [1, 2, 3, 4]) {
        await test.publish(queue, { name: `${days}` }, { delay: { days } });
      }
      const start = test.time.now;
      const first = await test.drain({ until: { hours: 36 } });
      assert.equal(first.deliveries, 1);
      assert(test.time.now <= start + 1.5 * DAY);
      const second = await test.drain({ until: new Date(start + 3 * DAY + 10_000) });
      assert.equal(second.deliveries, 2);
      assert(test.time.now <= start + 3 * DAY + 10_000);
      assert.equal((await test.drain({ until: new Date(start) })).deliveries, 0);
      assert.equal((await test.drain({ until: new Date(start + 5 * DAY) })).deliveries, 1);
      test.subscriber(jobs).assertCalled(4);
    },
  },
  {
    name: "a drain ends after as many deliveries as it is told",
    async run(database, form) {
      const jobs = handles(form, () => retryAfter({ hours: 1 }));
      await using test = await TestApp.start(service(database.connect(), form, jobs));
      await test.publish(queueOf(FULL_TABLES[form], "jobs"), { name: "a" });
      const report = await test.drain({ limit: 5 });
      assert.deepEqual(report, { deliveries: 5, outcomes: { retryAfter: 5 }, errors: 0 });
      assert.equal((await test.drain({ limit: 0 })).deliveries, 0);
    },
  },
  {
    name: "a drain throws the first error of a delivery where it is told to",
    async run(database, form) {
      const jobs = handles(form, ({ name }) => {
        if (name !== "good") throw new Error(`No ${name}`);
      });
      await using test = await TestApp.start(service(database.connect(), form, jobs));
      const queue = queueOf(FULL_TABLES[form], "jobs");
      await test.publish(queue, { name: "early" });
      await test.publish(queue, { name: "good" }, { delay: 1_000 });
      // What had failed before the drain is not of it.
      await assert.rejects(test.drain({ throwErrors: true }), /No early/);
      const [failed, ...rest] = test.deliveries.filter(({ error }) => error !== undefined);
      assert(failed?.settled);
      assert(rest.length <= 1, `${rest.length} more deliveries failed`);
    },
  },
  {
    name: "a drain waits for what a process that has crashed had in work",
    async run(database, form) {
      const driver = database.connect();
      const crashed = await TestApp.start(service(driver, form, handles(form, () => sleep(DAY))));
      await crashed.publish(queueOf(FULL_TABLES[form], "jobs"), { name: "a" });
      await crashed.crash();
      const jobs = handles(form, () => ack());
      const app = service(secondDriver(database, driver), form, jobs);
      {
        await using test = await TestApp.join(crashed, app);
        // A lock is free at once.
        const isLeft = form === "lease" ? 1 : 0;
        test.subscriber(jobs).assertCalled(1 - isLeft);
        assert.equal((await test.drain()).deliveries, isLeft);
        test.subscriber(jobs).assertCalledOnce().assertSettled(ack());
        assert.equal(test.deliveries[0]?.attempt, form === "row lock" ? 1 : 2);
      }
      await crashed[Symbol.asyncDispose]();
    },
  },
  {
    name: "a drain counts what another process handles as no delivery of its own, and ends",
    async run(database, form) {
      const driver = database.connect();
      const [own, others] = [1, 2].map(() =>
        handles(form, async () => {
          await sleep(3_600_000);
          return ack();
        })
      );
      await using test = await TestApp.start(service(driver, form, own!));
      const app = service(secondDriver(database, driver), form, others!);
      await using other = await TestApp.join(test, app);
      const queue = queueOf(FULL_TABLES[form], "jobs");
      for (const name of ["a", "b", "c", "d"]) await test.publish(queue, { name });
      const report = await test.drain();
      await other.drain();
      assert.equal(report.deliveries + other.deliveries.length, 4);
      assert(other.deliveries.length > 0);
      assert.deepEqual(await test.query("SELECT id FROM jobs"), []);
    },
  },
];

const ownSearch: ConformanceTest = {
  name:
    "a drain says of a queue that is searched by a statement of the service's own that it cannot",
  async run(database) {
    const claim = "SELECT id, attempt, locked_until, payload FROM jobs " +
      "WHERE locked_until IS NULL OR locked_until <= :now ORDER BY id LIMIT :limit";
    const table = inbox("jobs", {
      id: "id",
      attempt: "attempt",
      lockedUntil: "locked_until",
      payload: json<Job>("payload"),
    }, { statements: { claim } });
    const jobs = table.queue("jobs").subscribe(() => ack());
    const broker = new Broker(database.connect()).createTables(table).include(jobs);
    await using test = await TestApp.start(new App({ name: "suite" }).withBroker(broker));
    await assert.rejects(test.drain(), (error: unknown) => {
      assert(error instanceof DeclarationError);
      assert.match(
        error.message,
        /^Cannot drain queue "jobs": a statement .* use advance or waitFor$/,
      );
      return true;
    });
  },
};

const held: ConformanceTest = {
  name: "a drain leaves what is held at a seam, and goes no further than it is told",
  async run(database) {
    const jobs = handles("lease", () => ack());
    await using test = await TestApp.start(service(database.connect(), "lease", jobs));
    using hold = test.holdAt("before settle");
    await test.publish(queueOf(FULL_TABLES.lease, "jobs"), { name: "a" });
    await hold.reached();
    const report = await test.drain({ until: { minutes: 5 } });
    assert.deepEqual(report, { deliveries: 0, outcomes: {}, errors: 0 });
    await hold.release();
    assert.deepEqual(await test.drain(), report);
    test.subscriber(jobs).assertCalledOnce().assertSettled(ack());
  },
};

const live: ConformanceTest = {
  name: "a drain and a wait work on real time too",
  async run(database) {
    const jobs = handles(
      "lease",
      ({ name }, { attempt }) =>
        name === "again" && attempt === 1 ? retryAfter({ milliseconds: 200 }) : ack(),
    );
    const app = service(database.connect(), "lease", jobs);
    await using test = await TestApp.startLive(app);
    const queue = queueOf(FULL_TABLES.lease, "jobs");
    await test.publish(queue, { name: "again" });
    await test.publish(queue, { name: "later" }, { delay: 300 });
    const { deliveries } = await test.drain();
    assert(deliveries >= 2);
    test.subscriber(jobs).assertCalled(3).assertSettled(ack());
    await test.publish(queue, { name: "wait" }, { delay: 200 });
    await test.waitFor(() => test.subscriber(jobs).assertCalled(4));
    await assert.rejects(
      test.waitFor(() => test.subscriber(jobs).assertCalled(5), { within: { milliseconds: 50 } }),
      /Waited 0\.05 s in vain .*5 calls of its handler, but found: 4/s,
    );
  },
};

const refused: ConformanceTest = {
  name: "a drain refuses options that mean nothing",
  async run(database) {
    const jobs = handles("lease", () => retry());
    await using test = await TestApp.start(service(database.connect(), "lease", jobs));
    await test.publish(queueOf(FULL_TABLES.lease, "jobs"), { name: "a" }, { delay: 1_000 });
    await assert.rejects(test.drain({ limit: NaN }), RangeError);
    await assert.rejects(test.drain({ limit: -1 }), RangeError);
    await assert.rejects(test.drain({ until: new Date(NaN) }), RangeError);
    await assert.rejects(test.drain({ until: { minutes: -1 } }), RangeError);
    await assert.rejects(test.drain({ untill: 5 } as never), DeclarationError);
    test.subscriber(jobs).assertNotCalled();
  },
};

/** What draining an app promises. */
export const drainAppTests: readonly ConformanceTest[] = [
  ...inEachForm(tests),
  ownSearch,
  held,
  live,
  refused,
];
