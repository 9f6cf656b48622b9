import assert from "node:assert/strict";
import { ack, ClosedError, retryAfter, type Subscription, TestApp } from "./holdfast.ts";
import type { DeliveryRecord } from "../../src/runtime.ts";
import { FULL_TABLES } from "./full_service.ts";
import { formService, jobsIn } from "./form_service.ts";
import { type FormTest, inEachForm } from "./in_each_form.ts";
import type { Job, JobHandler } from "./lease_service.ts";
import { rolesService } from "./roles_service.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest } from "./test_database.ts";

const SECOND = 1_000;
const MINUTE = 60_000;
const LEASE = MINUTE;
/** The loops' poll interval is half a second, a tenth more or less. */
const POLL = 600;

const tests: readonly FormTest[] = [
  {
    name: "a row of an app that crashed comes back when its lease ends, or at once",
    async run(database, form) {
      const driver = database.connect();
      let aborted = 0;
      const first = formService(driver, form, async (_, { signal }) => {
        signal.addEventListener("abort", () => aborted++);
        await sleep(60 * MINUTE);
      });
      await using one = await TestApp.start(first.app);
      await one.publish(jobsIn(form), { name: "a" });
      await one.advance({ minutes: 10 });
      const renewals = renewalsOf(one);
      assert.equal(renewals > 0, form === "lease");
      await one.crash();
      assert.deepEqual(one.time.pending, []);
      const crashedAt = one.time.elapsed;
      const second = formService(driver, form, () => ack());
      await using two = await TestApp.join(one, second.app);
      if (form === "lease") {
        await two.advance(LEASE / 2 - POLL);
        two.subscriber(second.jobs).assertNotCalled();
      }
      await two.drain();
      const [{ startedAt }] = two.deliveries as [DeliveryRecord];
      const waited = startedAt - two.time.now + two.time.elapsed - crashedAt;
      // Leases end at whole seconds.
      const most = form === "lease" ? LEASE + SECOND + POLL : POLL;
      assert(waited <= most, `it came after ${waited} ms`);
      two.subscriber(second.jobs).assertCalledOnce().assertSettled(ack());
      await two.advance({ hours: 2 });
      assert.equal(renewalsOf(one), renewals);
      assert.equal(aborted, 0);
      one.subscriber(first.jobs).assertCalledOnce();
      assert.deepEqual(one.subscriber(first.jobs).outcomes(), []);
    },
  },
  {
    name: "the same app joins again after a crash, and finishes what its database holds",
    async run(database, form) {
      let hangs = true;
      const { app, jobs } = formService(database.connect(), form, async () => {
        if (hangs) await sleep(5 * MINUTE);
        return ack();
      });
      await using one = await TestApp.start(app);
      for (const name of ["a", "b"]) await one.publish(jobsIn(form), { name });
      await one.crash();
      await using two = await TestApp.join(one, app);
      await two.advance({ minutes: 2 });
      await two.crash();
      hangs = false;
      await using three = await TestApp.join(one, app);
      await three.drain();
      assert.deepEqual(await three.query("SELECT id FROM jobs"), []);
      three.subscriber(jobs).assertReceived({ name: "a" }).assertReceived({ name: "b" });
      assert.deepEqual(three.subscriber(jobs).outcomes(), [ack(), ack()]);
    },
  },
  {
    name: "an app that crashes at a seam leaves its row as it was there",
    async run(database, form) {
      for (const seam of ["after claim", "before settle", "after settle"] as const) {
        const driver = database.connect();
        const first = formService(driver, form, () => ack());
        await using one = await TestApp.start(first.app);
        const hold = one.holdAt(seam);
        await one.publish(jobsIn(form), { name: seam });
        await hold.reached();
        await one.crash();
        await hold.release();
        const second = formService(driver, form, () => ack());
        await using two = await TestApp.join(one, second.app);
        await two.drain();
        one.subscriber(first.jobs).assertCalled(seam === "after claim" ? 0 : 1);
        two.subscriber(second.jobs).assertCalled(seam === "after settle" ? 0 : 1);
        assert.deepEqual(await two.query("SELECT id FROM jobs"), []);
      }
    },
  },
  {
    name: "an app that crashes during the delay of a retry leaves the row due as it was",
    async run(database, form) {
      const driver = database.connect();
      const first = formService(driver, form, () => retryAfter({ hours: 1 }));
      await using one = await TestApp.start(first.app);
      await one.publish(jobsIn(form), { name: "a" });
      await one.advance({ minutes: 30 });
      await one.crash();
      const second = formService(driver, form, () => ack());
      await using two = await TestApp.join(one, second.app);
      await two.advance({ minutes: 29 });
      two.subscriber(second.jobs).assertNotCalled();
      await two.advance({ minutes: 2 });
      two.subscriber(second.jobs).assertCalledOnce().assertSettled(ack());
      one.subscriber(first.jobs).assertCalledOnce();
    },
  },
  {
    name: "what a transactional handler wrote and published is gone with its app",
    async run(database, form) {
      const driver = database.connect();
      const replies = FULL_TABLES[form].queue("replies");
      const transactional = (hang: boolean) => {
        const options = { transactional: true, pollInterval: 500 } as const;
        const all = form === "lease" ? { ...options, lease: { hours: 1 } } : options;
        return FULL_TABLES[form].queue("jobs").subscribe(all, async ({ name }, delivery) => {
          await database.write(delivery, `INSERT INTO notes (note) VALUES ('${name}')`);
          await delivery.publish(replies, { name });
          if (hang) await sleep(10 * MINUTE);
        }) as Subscription<Job>;
      };
      const app = (jobs: Subscription<Job>) => rolesService(driver, FULL_TABLES[form], jobs);
      await using one = await TestApp.start(app(transactional(true)));
      await one.query("CREATE TABLE notes (note VARCHAR(100))");
      await one.publish(FULL_TABLES[form].queue("jobs"), { name: "a" });
      assert.deepEqual(one.published(replies).rolledBack(), []);
      await one.crash();
      assert.deepEqual(one.published(replies).rolledBack(), [{ name: "a" }]);
      const jobs = transactional(false);
      await using two = await TestApp.join(one, app(jobs));
      await two.advance({ hours: 2 });
      assert.deepEqual((await two.query("SELECT note FROM notes")).length, 1);
      two.subscriber(jobs).assertCalledOnce().assertSettled(ack());
      two.published(replies).assertPublishedOnce();
      assert.equal((await two.query("SELECT id FROM jobs WHERE queue = 'replies'")).length, 1);
    },
  },
  {
    name: "an app can crash while a publish, a claim and a settle are in flight",
    async run(database, form) {
      const driver = database.connect();
      let acked = 0;
      const handle: JobHandler = () => {
        acked++;
        return ack();
      };
      const first = formService(driver, form, handle);
      await using clock = await TestApp.start(formService(driver, form, handle).app);
      await clock.crash();
      for (let turns = 0; turns < 2_000; turns = Math.ceil(1.5 * turns + 1)) {
        const one = await TestApp.join(clock, first.app);
        const publishing = one.publish(jobsIn(form), { name: String(turns) });
        const { elapsed } = one.time;
        const ended = assert.rejects(publishing, isCrashed).catch(() => publishing);
        for (let turn = 0; turn < turns; turn++) await new Promise((go) => setImmediate(go));
        await one.crash();
        await ended;
        assert(one.time.elapsed - elapsed < SECOND, `${one.time.elapsed - elapsed} ms`);
      }
      const last = formService(driver, form, handle);
      await using two = await TestApp.join(clock, last.app);
      await two.publish(jobsIn(form), { name: "last" });
      await two.drain();
      assert.deepEqual(await two.query("SELECT id FROM jobs"), []);
      two.subscriber(last.jobs).assertReceived({ name: "last" });
      assert(acked >= 1);
    },
  },
  {
    name: "a crashed app refuses calls, and says why; what it has done can be asked",
    async run(database, form) {
      const { app, jobs } = formService(database.connect(), form, () => ack());
      await using one = await TestApp.start(app);
      await one.publish(jobsIn(form), { name: "a" });
      await one.settled();
      await one.crash();
      const calls: readonly (() => Promise<unknown>)[] = [
        () => one.publish(jobsIn(form), { name: "b" }),
        () => one.drain(),
        () => one.query("SELECT 1"),
        () => one.disconnect(),
        () => one.crash(),
        () => one.stop(),
        async () => await one.holdAt("after claim").reached(),
        () => app.publish(jobsIn(form), { name: "b" }),
      ];
      for (const call of calls) await assert.rejects(call, isCrashed);
      one.subscriber(jobs).assertCalledOnce().assertSettled(ack());
      assert.match(String(one.trace), /the app crashed$/);
    },
  },
  {
    name: "an app crashes though a statement of its waits for another app's lock",
    forms: ["lease"],
    async run(database, form) {
      const driver = database.connect();
      const table = FULL_TABLES[form];
      const counting = (queue: string) =>
        table.queue(queue).subscribe(
          { transactional: true, lease: { hours: 4 }, pollInterval: { minutes: 10 } },
          async (_, delivery) => {
            await database.write(delivery, "UPDATE counters SET n = n + 1 WHERE id = 1");
            await sleep(60 * MINUTE);
          },
        ) as Subscription<Job>;
      const [holds, waits] = [counting("holds"), counting("waits")];
      await using one = await TestApp.start(rolesService(driver, table, holds));
      await one.query("CREATE TABLE counters (id INTEGER PRIMARY KEY, n INTEGER)");
      await one.query("INSERT INTO counters (id, n) VALUES (1, 0)");
      const two = await TestApp.join(one, rolesService(driver, table, waits));
      await two.publish(table.queue("waits"), { name: "b" }, { delay: { minutes: 1 } });
      await one.publish(table.queue("holds"), { name: "a" });
      await one.advance({ minutes: 15 });
      // Where there is one writer its claim waits already.
      two.subscriber(waits).assertCalled(driver.hasOneWriter ? 0 : 1);
      await two.crash();
      await one.advance({ hours: 1 });
      one.subscriber(holds).assertCalledOnce().assertSettled(ack());
      assert.equal(Number((await one.query("SELECT n FROM counters"))[0]?.n), 1);
    },
  },
  {
    name: "a handler that goes on after its app has crashed does nothing any more",
    async run(database, form) {
      for (const start of [TestApp.start, TestApp.startLive]) {
        const driver = database.connect();
        const gate = Promise.withResolvers<void>();
        const steps: string[] = [];
        const timerFired = Promise.withResolvers<void>();
        const first = formService(driver, form, async (_, delivery) => {
          await gate.promise;
          steps.push("goes on");
          setTimeout(timerFired.resolve, 0);
          delivery.publish(jobsIn(form), { name: "b" }).then(() => steps.push("published"));
          return ack();
        });
        await using one = await start(first.app);
        const publishing = one.publish(jobsIn(form), { name: "a" }).catch(isCrashed);
        while (one.deliveries.length === 0) await new Promise((go) => setTimeout(go, 1));
        await one.crash();
        gate.resolve();
        await publishing;
        const second = formService(driver, form, () => ack());
        await using two = await TestApp.join(one, second.app);
        if (form !== "lease") await two.waitFor(() => two.deliveries.length > 0);
        else if (one.time.isVirtual) await two.advance({ minutes: 2 });
        await two.settled();
        // On real time nobody takes the timer from the handler, so it is awaited.
        if (one.time.isVirtual) timerFired.promise.then(() => steps.push("timer"));
        else await timerFired.promise;
        await new Promise((go) => setTimeout(go, 0));
        assert.deepEqual(steps, ["goes on"]);
        assert.equal(one.deliveries[0]?.outcome, undefined);
        two.subscriber(second.jobs).assertCalled(form === "lease" && !one.time.isVirtual ? 0 : 1);
        await two.query("DELETE FROM jobs");
      }
    },
  },
];

/** What is left of an app that crashes, and what becomes of it. */
export const crashAppTests: readonly ConformanceTest[] = inEachForm(tests);

function renewalsOf(app: TestApp): number {
  return app.trace.entries.filter(({ event }) => event.type === "renewed").length;
}

function isCrashed(error: unknown): true {
  assert(error instanceof ClosedError, String(error));
  assert.match(error.message, /"suite" (has crashed|is not running)/);
  return true;
}
