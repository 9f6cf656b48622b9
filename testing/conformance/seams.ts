import assert from "node:assert/strict";
import {
  ack,
  type Driver,
  type Form,
  LeaseLostError,
  type Outcome,
  type SubscribeOptions,
  type Subscription,
  TestApp,
} from "./holdfast.ts";
import type { Seam } from "../../src/runtime.ts";
import { FULL_TABLES } from "./full_service.ts";
import { type FormTest, inEachForm } from "./in_each_form.ts";
import type { Job, JobHandler } from "./lease_service.ts";
import { queueOf, rolesService, subscribe } from "./roles_service.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

const SEAMS: readonly Seam[] = ["after claim", "before settle", "after settle"];

/** A lease of a minute where there are leases. */
function handles(
  form: Form,
  handle: JobHandler,
  options: SubscribeOptions<Form, "jobs"> = {},
): Subscription<Job> {
  const lease = form === "lease" ? { lease: { minutes: 1 } } : {};
  return subscribe(FULL_TABLES[form], "jobs", handle, { ...lease, ...options });
}

async function start(driver: Driver, form: Form, ...jobs: Subscription<Job>[]): Promise<TestApp> {
  return await TestApp.start(rolesService(driver, FULL_TABLES[form], ...jobs));
}

/** A second process, which shares the connection where there is one only. */
async function join(
  database: TestDatabase,
  test: TestApp,
  driver: Driver,
  form: Form,
  jobs: Subscription<Job>,
): Promise<TestApp> {
  const own = database.address === undefined ? driver : database.connect();
  return await TestApp.join(test, rolesService(own, FULL_TABLES[form], jobs));
}

async function publish(test: TestApp, form: Form, ...names: readonly string[]): Promise<void> {
  for (const name of names) await test.publish(queueOf(FULL_TABLES[form], "jobs"), { name });
}

async function countRows(test: TestApp): Promise<number> {
  return (await test.query("SELECT id FROM jobs")).length;
}

function countEvents(test: TestApp, type: string): number {
  return test.trace.entries.filter(({ event }) => event.type === type).length;
}

const tests: readonly FormTest[] = [
  ...SEAMS.flatMap((seam): readonly FormTest[] => [
    {
      name: `a delivery is held ${seam} while time passes, and goes on when it is released`,
      async run(database, form) {
        const jobs = handles(form, () => ack());
        await using test = await start(database.connect(), form, jobs);
        using hold = test.holdAt(seam);
        await publish(test, form, "a");
        const held = await hold.reached();
        assert.deepEqual(hold.deliveries, [held]);
        assert.equal(held.settled, seam === "after settle");
        test.subscriber(jobs).assertCalled(seam === "after claim" ? 0 : 1);
        await test.advance({ minutes: 5 });
        assert.deepEqual(hold.deliveries, [held]);
        assert.equal(held.settled, seam === "after settle");
        const isRenewed = form === "lease" && seam !== "after settle";
        assert.equal(countEvents(test, "renewed") > 0, isRenewed);
        assert.equal(countEvents(test, "lost"), 0);
        if (form !== "row lock" || seam === "after settle") {
          assert.equal(await countRows(test), seam === "after settle" ? 0 : 1);
        }
        await hold.release();
        assert.deepEqual(hold.deliveries, []);
        assert.equal(await countRows(test), 0);
        test.subscriber(jobs).assertCalledOnce().assertSettled(ack());
        await publish(test, form, "b");
        test.subscriber(jobs).assertCalled(2).assertSettled(ack());
      },
    },
    {
      name: `what is held ${seam} is not waited for, and a disposed hold lets it go on`,
      async run(database, form) {
        const jobs = handles(form, () => ack());
        await using test = await start(database.connect(), form, jobs);
        {
          using hold = test.holdAt(seam);
          await publish(test, form, "a");
          const before = test.time.elapsed;
          await test.settled();
          assert.equal(test.time.elapsed, before);
          assert.equal(hold.deliveries.length, 1);
        }
        await test.settled();
        test.subscriber(jobs).assertCalledOnce().assertSettled(ack());
        assert.equal(await countRows(test), 0);
      },
    },
    {
      name: `a stop lets what is held ${seam} go on`,
      async run(database, form) {
        const jobs = handles(form, () => ack());
        const driver = database.connect();
        await using test = await start(driver, form, jobs);
        // What it finds in memory is gone once the last app has stopped.
        await using other = await TestApp.join(test, rolesService(driver, FULL_TABLES[form]));
        const hold = test.holdAt(seam);
        await publish(test, form, "a");
        await hold.reached();
        const report = await test.stop();
        assert.deepEqual(hold.deliveries, []);
        test.subscriber(jobs).assertCalledOnce().assertSettled(ack());
        assert.equal(report.queues[0]?.released, 0);
        assert.equal(await countRows(other), 0);
      },
    },
    {
      name: `a crash of an app that holds a delivery ${seam} leaves it to another`,
      async run(database, form) {
        const driver = database.connect();
        await using test = await start(driver, form, handles(form, () => ack()));
        const hold = test.holdAt(seam);
        await publish(test, form, "a");
        await hold.reached();
        await test.crash();
        const jobs = handles(form, () => ack());
        await using other = await join(database, test, driver, form, jobs);
        await hold.release();
        await other.advance({ minutes: 3 });
        const calls = seam === "after settle" ? 0 : 1;
        other.subscriber(jobs).assertCalled(calls);
        assert.equal(await countRows(other), 0);
        assert.equal(test.deliveries[0]?.settled ?? false, seam === "after settle");
      },
    },
    {
      name: `all messages of a batch are held ${seam}`,
      async run(database, form) {
        const jobs = FULL_TABLES[form].queue("jobs").subscribe(
          { batch: 3, pollInterval: 500 },
          () => ack(),
        ) as unknown as Subscription<Job>;
        await using test = await start(database.connect(), form, jobs);
        using hold = test.holdAt(seam, jobs);
        await publish(test, form, "a", "b", "c");
        await test.advance({ minutes: 5 });
        const names = () => hold.deliveries.map(({ id }) => String(id)).toSorted();
        const held = names();
        assert(held.length >= 1 && held.length <= 3);
        await test.settled();
        assert.deepEqual(names(), held);
        await hold.release();
        await test.settled();
        assert.equal(await countRows(test), 0);
        assert.deepEqual(
          test.subscriber(jobs).received().map(({ name }) => name).toSorted(),
          ["a", "b", "c"],
        );
        assert(test.deliveries.every(({ settled }) => settled));
      },
    },
  ]),
  ...(["before settle", "after settle"] as const).flatMap((seam): readonly FormTest[] => [
    {
      name: `a settle in the handler is held ${seam}`,
      async run(database, form) {
        const jobs = handles(form, async (_, delivery) => {
          await delivery.settle(ack());
        });
        await using test = await start(database.connect(), form, jobs);
        using hold = test.holdAt(seam);
        await publish(test, form, "a");
        const held = await hold.reached();
        await test.settled();
        await test.advance({ minutes: 5 });
        assert.deepEqual(hold.deliveries, [held]);
        if (form !== "row lock" || seam === "after settle") {
          assert.equal(await countRows(test), seam === "after settle" ? 0 : 1);
        }
        await hold.release();
        test.subscriber(jobs).assertCalledOnce().assertSettled(ack());
        assert.equal(await countRows(test), 0);
      },
    },
    {
      name: `settles one by one in a batch's handler are held ${seam}`,
      forms: ["lease", "advisory lock"],
      async run(database, form) {
        const jobs = FULL_TABLES[form].queue("jobs").subscribe(
          { batch: 3, pollInterval: { minutes: 1 } },
          async (_, deliveries) => {
            for (const delivery of deliveries) await delivery.settle(ack());
          },
        ) as unknown as Subscription<Job>;
        await using test = await start(database.connect(), form, jobs);
        using hold = test.holdAt(seam);
        const insert = "INSERT INTO jobs (queue, attempt, payload, priority) VALUES";
        const rows = ["a", "b"].map((name) => `('jobs', 1, '{"name":"${name}"}', 0)`);
        await test.query(`${insert} ${rows.join(", ")}`);
        await hold.reached();
        await test.settled();
        assert.equal(hold.deliveries.length, 1);
        await hold.release();
        test.subscriber(jobs).assertCalledOnce().assertSettled(ack());
        assert.equal(await countRows(test), 0);
      },
    },
  ]),
  ...(["after claim", "before settle"] as const).flatMap((seam): readonly FormTest[] =>
    [false, true].map((byHand): FormTest => ({
      name: `a lease that is lost while its delivery is held ${seam} refuses the ` +
        `${byHand ? "handler's own settle" : "settle"}, and the next holder has the row`,
      forms: ["lease"],
      async run(database, form) {
        const driver = database.connect();
        const refused: unknown[] = [];
        const jobs = handles(form, async (_, delivery) => {
          if (!byHand) return ack();
          await delivery.settle(ack()).catch((error) => refused.push(error));
        });
        await using test = await start(driver, form, jobs);
        const others = handles(form, () => ack());
        await using other = await join(database, test, driver, form, others);
        using hold = test.holdAt(seam);
        await publish(test, form, "a");
        const held = await hold.reached();
        test.pauseRenewals();
        await test.advance({ minutes: 3 });
        other.subscriber(others).assertCalledOnce().assertSettled(ack());
        assert.equal(countEvents(test, "lost"), 1);
        assert.deepEqual(hold.deliveries, [held]);
        await hold.release();
        await test.settled();
        assert.equal(held.settled, false);
        assert(held.error instanceof LeaseLostError, String(held.error));
        assert.match(String(test.trace), /did not settle \d+ \(attempt 1\) as \w+, LeaseLostError/);
        assert.equal(refused.length, byHand ? 1 : 0);
        test.resumeRenewals();
        assert.equal(await countRows(test), 0);
      },
    }))
  ),
];

const oneSubscription: ConformanceTest = {
  name: "a hold of one subscription lets the others go on",
  async run(database) {
    const table = FULL_TABLES.lease;
    const held = subscribe(table, "held", (): Outcome => ack());
    const free = subscribe(table, "free", (): Outcome => ack());
    await using test = await TestApp.start(rolesService(database.connect(), table, held, free));
    using hold = test.holdAt("before settle", held);
    await test.publish(queueOf(table, "held"), { name: "a" });
    await test.publish(queueOf(table, "free"), { name: "b" });
    await test.settled();
    test.subscriber(free).assertCalledOnce().assertSettled(ack());
    assert.equal(hold.deliveries.length, 1);
    assert.equal(hold.deliveries[0]?.subscription, held);
  },
};

/** What holding deliveries at a seam promises. */
export const seamTests: readonly ConformanceTest[] = [...inEachForm(tests), oneSubscription];
