import assert from "node:assert/strict";
import {
  ack,
  App,
  Broker,
  type Delivery,
  type Outcome,
  type Subscription,
  TestApp,
} from "./holdfast.ts";
import { FULL_TABLES, type FullInbox } from "./full_service.ts";
import { type FormTest, inEachForm } from "./in_each_form.ts";
import type { Job } from "./lease_service.ts";
import { queueOf, rolesService, subscribe } from "./roles_service.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest } from "./test_database.ts";

const START = Date.UTC(2031, 5, 7, 8, 9, 10);
const HOUR = 3_600_000;

const tests: readonly FormTest[] = [
  {
    name: "what a test publishes through a broker is due by the app's clock",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const queue = queueOf(table, "jobs");
      const jobs = subscribe(table, "jobs", () => ack());
      const broker = new Broker(database.connect()).createTables(table).include(jobs);
      const app = new App({ name: "suite" }).withBroker(broker);
      await using test = await TestApp.start(app, { now: START });
      await broker.publish(queue, { name: "now" });
      await broker.publishMany(queue, [{ name: "hour" }], { delay: HOUR });
      await broker.transaction(async (tx) => {
        assert(Math.abs(Date.now() - START) > 24 * HOUR, "the test's own time is not real");
        await broker.publish(queue, { name: "two hours" }, { tx, delay: 2 * HOUR });
      });
      await app.publish(queue, { name: "three hours" }, { delay: 3 * HOUR });
      await test.settled();
      const received = () => test.subscriber(jobs).received().map(({ name }) => name);
      assert.deepEqual(received(), ["now"]);
      await test.advance(HOUR - 2_000);
      assert.deepEqual(received(), ["now"]);
      await test.drain();
      assert.deepEqual(received(), ["now", "hour", "two hours", "three hours"]);
      for (const [hours, { startedAt }] of test.deliveries.entries()) {
        const late = startedAt - (START + hours * HOUR);
        assert(late >= 0 && late <= 1_000, `${hours} h: ${late} ms late`);
      }
    },
  },
  {
    name: "what a test asks of a broker while its app crashes rejects, and does not hang",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const driver = database.connect();
      const broker = new Broker(driver).createTables(table)
        .include(subscribe(table, "jobs", () => ack()));
      await using test = await TestApp.start(new App({ name: "suite" }).withBroker(broker));
      const asked = [
        broker.publish(queueOf(table, "jobs"), { name: "a" }),
        broker.publishMany(queueOf(table, "jobs"), [{ name: "b" }, { name: "c" }]),
        broker.transaction(() => sleep(100)),
      ].map((each) => assert.rejects(each, /has crashed|disconnect|cut the connection/));
      await test.crash();
      await Promise.all(asked);
      await assert.rejects(broker.publish(queueOf(table, "jobs"), { name: "d" }), /not connected/);
    },
  },
  {
    name: "NOW() in a handler's own SQL tells the virtual time where the session can be set to it",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const driver = database.connect();
      if (driver.dialect.setClock === undefined) return;
      const note = "INSERT INTO times VALUES (UNIX_TIMESTAMP(NOW(3)))";
      const jobs = transactional(table, async (_, delivery) => {
        await database.write(delivery, note);
        await sleep(HOUR / 4);
        await database.write(delivery, note);
        return ack();
      });
      const app = rolesService(driver, table, jobs);
      await using test = await TestApp.start(app, { now: START });
      await test.query("CREATE TABLE times (at DOUBLE)");
      await test.publish(queueOf(table, "jobs"), { name: "a" }, { delay: HOUR });
      await test.drain();
      const times = (await test.query("SELECT at FROM times")).map(({ at }) => Number(at) * 1000);
      const [delivery] = test.deliveries;
      assert.deepEqual(times, [delivery!.startedAt, delivery!.startedAt + HOUR / 4]);
      const [row] = await test.query("SELECT UNIX_TIMESTAMP(NOW(3)) AS now");
      assert.equal(Number(row?.now) * 1000, Math.floor(test.time.now));
    },
  },
];

/** A handler that may hold its row for half an hour. */
function transactional(
  table: FullInbox,
  handle: (job: Job, delivery: Delivery<number, true>) => Promise<Outcome>,
): Subscription<Job> {
  const lease = table.form === "lease" ? { lease: { hours: 1 } } : {};
  const options = { transactional: true, pollInterval: 1_000, ...lease } as const;
  return table.queue("jobs").subscribe(options as never, handle as never) as Subscription<Job>;
}

/** Whose time it is that an app's brokers, and its database, go by. */
export const kitClockTests: readonly ConformanceTest[] = inEachForm(tests);
