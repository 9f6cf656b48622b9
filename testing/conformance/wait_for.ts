import assert from "node:assert/strict";
import { ack, DeclarationError, retryAfter, TestApp } from "./holdfast.ts";
import { FULL_TABLES } from "./full_service.ts";
import { type FormTest, inEachForm } from "./in_each_form.ts";
import { queueOf, rolesService, subscribe } from "./roles_service.ts";
import type { ConformanceTest } from "./test_database.ts";

const HOUR = 3_600_000;

const tests: readonly FormTest[] = [
  {
    name: "time passes until a condition is true, resolves to true or no longer throws",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const jobs = subscribe(
        table,
        "jobs",
        (_, { attempt }) => attempt! < 4 ? retryAfter({ hours: 1 }) : ack(),
      );
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      const { elapsed } = test.time;
      await test.waitFor(() => test.deliveries.length === 1);
      assert.equal(test.time.elapsed, elapsed);
      await test.waitFor(() => test.deliveries.length === 2);
      assertElapsed(test, HOUR);
      await test.waitFor(() => test.subscriber(jobs).assertCalled(3));
      assertElapsed(test, 2 * HOUR);
      await test.waitFor(async () => (await test.query("SELECT id FROM jobs")).length === 0);
      assertElapsed(test, 3 * HOUR);
      await test.waitFor(async () => {
        await Promise.resolve();
        return test.subscriber(jobs).assertSettled(ack());
      }, { within: 0 });
    },
  },
  {
    name: "a condition that does not hold in time fails with itself, the reason and what happened",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const jobs = subscribe(table, "jobs", () => ack());
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      const start = test.time.elapsed;
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      const never = test.waitFor(() => test.deliveries.length === 2, { within: { minutes: 10 } });
      await assert.rejects(never, (error: unknown) => {
        assert(error instanceof assert.AssertionError);
        assert.match(
          error.message,
          /^Waited 600 s in vain for \(\) ?=> ?test\.deliveries\.length === 2: /,
        );
        assert.match(error.message, /What happened:\n\+.* jobs: published .*: settled .* as ack$/s);
        return true;
      });
      assert.equal(test.time.elapsed, start + 600_000);
      const twice = test.waitFor(() => test.subscriber(jobs).assertCalled(2));
      await assert.rejects(twice, (error: unknown) => {
        assert(error instanceof assert.AssertionError);
        assert.match(
          error.message,
          /^Waited 86400 s in vain for .*2 calls of its handler, but found: 1/s,
        );
        assert.equal(error.message.split("What happened:").length, 2);
        return true;
      });
      assert.equal(test.time.elapsed, start + 600_000 + 24 * HOUR);
    },
  },
  {
    name: "a condition that breaks is not asked again",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const jobs = subscribe(table, "jobs", () => ack());
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      const { elapsed } = test.time;
      let asked = 0;
      const broken = () => {
        asked++;
        throw new TypeError("A mistake in the test");
      };
      await assert.rejects(test.waitFor(broken), /A mistake in the test/);
      await assert.rejects(test.waitFor(() => Promise.reject(new RangeError("too"))), RangeError);
      await assert.rejects(test.waitFor(() => true, { in: 5 } as never), DeclarationError);
      assert.equal(asked, 1);
      assert.equal(test.time.elapsed, elapsed);
    },
  },
];

function assertElapsed({ time: { elapsed } }: TestApp, least: number): void {
  assert(elapsed >= least && elapsed < least + 10_000, `${elapsed} ms, not ${least}`);
}

/** What waiting for a condition promises. */
export const waitForTests: readonly ConformanceTest[] = inEachForm(tests);
