import assert from "node:assert/strict";
import { ack, type Delivery, DriverError, PublishError, TestApp } from "./holdfast.ts";
import { formService, jobsIn } from "./form_service.ts";
import { type FormTest, inEachForm } from "./in_each_form.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest } from "./test_database.ts";
import { withLog } from "./with_log.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

const tests: readonly FormTest[] = [
  {
    name: "a handler goes on while its database cannot be reached, and settles when it can",
    forms: ["lease"],
    async run(database, form) {
      const { app, jobs } = formService(database.connect(), form, async () => {
        await sleep(10 * SECOND);
        return ack();
      });
      await using test = await TestApp.start(app);
      await test.publish(jobsIn(form), { name: "a" });
      await test.advance({ seconds: 5 });
      await test.disconnect({ for: { seconds: 20 } });
      await test.advance({ seconds: 19 });
      assert.equal(test.deliveries[0]?.settled, false);
      await test.advance({ seconds: 3 });
      test.subscriber(jobs).assertCalledOnce().assertSettled(ack());
      assert.deepEqual(await test.query("SELECT id FROM jobs"), []);
      assert.match(String(test.trace), /the app was disconnected until /);
    },
  },
  {
    name:
      "a lease that ends while its database cannot be reached is lost, and nothing is twice acked",
    forms: ["lease"],
    async run(database, form) {
      const { app, jobs } = formService(database.connect(), form, async (_, { attempt = 0 }) => {
        await sleep(attempt === 1 ? 2 * MINUTE : SECOND);
        return ack();
      });
      await using test = await TestApp.start(app);
      await test.publish(jobsIn(form), { name: "a" });
      await test.disconnect({ for: { minutes: 5 } });
      await test.drain();
      test.subscriber(jobs).assertCalled(2).assertSettled(ack());
      assert.deepEqual(test.subscriber(jobs).outcomes(), [ack()]);
      assert.equal(test.deliveries[0]?.settled, false);
    },
  },
  {
    name: "a connection that is cut aborts the handler whose row it holds, and the row comes back",
    forms: ["row lock", "advisory lock"],
    async run(database, form) {
      for (const length of [undefined, { minutes: 1 }]) {
        const reasons: unknown[] = [];
        let heardAt = 0;
        const { app, jobs } = formService(database.connect(), form, async (_, { signal }) => {
          if (reasons.length > 0) return ack();
          await aborted(signal);
          reasons.push(signal.reason);
          heardAt = Date.now();
        });
        await using test = await TestApp.start(app);
        await test.publish(jobsIn(form), { name: "a" });
        await test.advance({ seconds: 90 });
        const cutAt = test.time.now;
        await test.disconnect({ for: length });
        await test.drain();
        assert.equal(heardAt, cutAt);
        assert.equal(heardAt, cutAt);
        assert(reasons[0] instanceof DriverError, String(reasons[0]));
        assert.equal(reasons[0].kind, "disconnected");
        test.subscriber(jobs).assertCalled(2).assertSettled(ack());
        assert.deepEqual(test.subscriber(jobs).outcomes(), [ack()]);
        assert.deepEqual(await test.query("SELECT id FROM jobs"), []);
      }
    },
  },
  {
    name: "claims go on after the database could not be reached, which is told in two lines",
    async run(database, form) {
      await withLog(async (lines) => {
        const driver = database.connect();
        const { app, jobs } = formService(driver, form, () => ack());
        await using test = await TestApp.start(app);
        await test.disconnect({ for: { minutes: 10 } });
        await assert.rejects(test.publish(jobsIn(form), { name: "a" }), isReadable);
        await test.advance({ minutes: 9 });
        await assert.rejects(test.publish(jobsIn(form), { name: "a" }), isReadable);
        test.subscriber(jobs).assertNotCalled();
        test.published(jobsIn(form)).assertNotPublished();
        await test.advance({ minutes: 2 });
        await test.publish(jobsIn(form), { name: "a" });
        await test.drain();
        test.subscriber(jobs).assertCalledOnce().assertSettled(ack());
        const claims = lines.filter(({ category }) => category[1] === "claim");
        assert.deepEqual(claims.map(({ level }) => level), ["error", "info"]);
      });
    },
  },
  {
    name:
      "whatever is in flight when the connection is cut, nothing is lost, and nothing twice acked",
    async run(database, form) {
      const handled: string[] = [];
      const { app, jobs } = formService(database.connect(), form, ({ name }) => {
        handled.push(name);
        return ack();
      });
      await using test = await TestApp.start(app);
      const published: string[] = [];
      for (let turns = 0; turns < 3_000; turns = Math.ceil(1.3 * turns + 1)) {
        const name = String(turns);
        const publishing = test.publish(jobsIn(form), { name })
          .then(() => published.push(name), isReadable);
        for (let turn = 0; turn < turns; turn++) await new Promise((go) => setImmediate(go));
        await test.disconnect();
        await publishing;
      }
      await test.drain();
      assert.deepEqual(await test.query("SELECT id FROM jobs"), []);
      for (const name of published) assert(handled.includes(name), `${name} is lost`);
      const acked = test.deliveries.filter(({ settled }) => settled).map(({ id }) => id);
      assert.equal(new Set(acked).size, acked.length);
      test.subscriber(jobs).assertCalled(test.deliveries.length);
      assert(published.length > 0);
    },
  },
  {
    name: "a handler's publish is refused readably while its database cannot be reached",
    forms: ["lease"],
    async run(database, form) {
      const errors: unknown[] = [];
      const { app, jobs } = formService(database.connect(), form, async (_, delivery) => {
        await sleep(SECOND);
        await refusal(delivery, form, errors);
        return ack();
      });
      await using test = await TestApp.start(app);
      await test.publish(jobsIn(form), { name: "a" });
      await test.disconnect({ for: { seconds: 10 } });
      await test.drain();
      isReadable(errors[0]);
      test.subscriber(jobs).assertCalledOnce().assertSettled(ack());
    },
  },
];

/** How an app gets over connections that are cut. */
export const disconnectTests: readonly ConformanceTest[] = inEachForm(tests);

async function refusal(
  delivery: Delivery,
  form: Parameters<typeof jobsIn>[0],
  errors: unknown[],
): Promise<void> {
  await delivery.publish(jobsIn(form), { name: "b" }).catch((error) => errors.push(error));
}

/** Wakes up by itself in a day, so that the clock can move. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, 24 * 60 * MINUTE);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function isReadable(error: unknown): true {
  assert(error instanceof PublishError, String(error));
  assert.match(
    error.message,
    /^Cannot publish to queue "jobs" \(table "jobs"\): The test has cut the connection/,
  );
  return true;
}
