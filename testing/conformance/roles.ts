import assert from "node:assert/strict";
import {
  ack,
  deadLetter,
  DeclarationError,
  drop,
  type Form,
  retry,
  retryAfter,
  TestApp,
} from "./holdfast.ts";
import { MARKED_TABLES, queueOf, ROLES_TABLES, rolesService, subscribe } from "./roles_service.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

/** What the roles group, priority, retryAfter and processedAt promise, in every form. */
interface RolesTest {
  readonly name: string;
  readonly run: (database: TestDatabase, form: Form) => Promise<void>;
}

const tests: readonly RolesTest[] = [
  {
    name: "rows are delivered in order of priority, then of due time, then of id",
    async run(database, form) {
      const table = ROLES_TABLES[form];
      const names: string[] = [];
      const jobs = subscribe(table, "jobs", async ({ name }) => {
        if (name === "blocker") await sleep(10_000);
        else names.push(name);
      });
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      const queue = queueOf(table, "jobs");
      await test.publish(queue, { name: "blocker" });
      await test.publish(queue, { name: "last" }, { priority: 1 });
      await test.publish(queue, { name: "third" }, { delay: { seconds: 5 } });
      await test.publish(queue, { name: "fourth" }, { delay: { seconds: 7 } });
      await test.publish(queue, { name: "second" });
      await test.publish(queue, { name: "first" }, { priority: -9 });
      await test.publish(queue, { name: "very last" }, { priority: 2_000_000_000n });
      await test.advance({ seconds: 11 });
      assert.deepEqual(names, ["first", "second", "third", "fourth", "last", "very last"]);
    },
  },
  {
    name: "a delayed message, and one for a time, wait for their time and no longer",
    async run(database, form) {
      const table = ROLES_TABLES[form];
      const jobs = subscribe(table, "jobs", () => ack());
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      const queue = queueOf(table, "jobs");
      await test.publish(queue, { name: "late" }, { delay: { minutes: 5 } });
      const at = new Date(test.time.now + 120_000);
      await test.publish(queue, { name: "at" }, { at });
      await test.advance({ seconds: 119 });
      test.subscriber(jobs).assertNotCalled();
      await test.advance({ seconds: 2 });
      test.subscriber(jobs).assertCalledOnce().assertReceived({ name: "at" });
      await test.advance({ seconds: 178 });
      test.subscriber(jobs).assertCalledOnce();
      await test.advance({ seconds: 2 });
      test.subscriber(jobs).assertCalled(2);
    },
  },
  {
    name: "the queues of one table get their own messages only",
    async run(database, form) {
      const table = ROLES_TABLES[form];
      const one = subscribe(table, "one", () => ack());
      const two = subscribe(table, "two", () => ack());
      await using test = await TestApp.start(rolesService(database.connect(), table, one, two));
      for (const name of ["one", "two", "one", "nobody's"]) {
        await test.publish(queueOf(table, name), { name });
      }
      await test.advance({ seconds: 2 });
      assert.deepEqual(test.subscriber(one).received(), [{ name: "one" }, { name: "one" }]);
      assert.deepEqual(test.subscriber(two).received(), [{ name: "two" }]);
      assert.deepEqual(await values(test, "queue"), ["nobody's"]);
    },
  },
  {
    name: "with processedAt ack and drop mark the row, which is not delivered again",
    async run(database, form) {
      const table = MARKED_TABLES[form];
      const jobs = subscribe(
        table,
        "jobs",
        ({ name }, { attempt }) => attempt === 1 ? retry() : name === "a" ? ack() : drop(),
      );
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      for (const name of ["a", "b"]) await test.publish(queueOf(table, "jobs"), { name });
      await test.advance({ minutes: 5 });
      assert.equal(test.deliveries.length, 4);
      assert((await values(test, "done")).every((done) => done !== null));
      if (form === "lease") assert.deepEqual(await values(test, "locked_until"), [null, null]);
    },
  },
  {
    name: "retryAfter delivers again after its delay, as the next attempt",
    async run(database, form) {
      const table = ROLES_TABLES[form];
      const jobs = subscribe(
        table,
        "jobs",
        (_, { attempt }) => attempt === 1 ? retryAfter({ minutes: 5 }, "not yet") : ack(),
      );
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      await test.advance({ seconds: 298 });
      test.subscriber(jobs).assertCalledOnce();
      await test.advance({ seconds: 3 });
      assert.deepEqual(test.deliveries.map(({ attempt }) => attempt), [1, 2]);
      test.subscriber(jobs).assertSettled(ack());
    },
  },
  {
    name: "an error delays the next attempt",
    async run(database, form) {
      const table = ROLES_TABLES[form];
      const jobs = subscribe(table, "jobs", () => {
        throw new Error("No luck");
      });
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      await test.advance({ minutes: 1 });
      assert(test.deliveries.length < 10, `${test.deliveries.length} deliveries in a minute`);
      assert(test.deliveries.length > 1);
    },
  },
  {
    name: "deadLetter moves the row to another group, where it is delivered at once",
    async run(database, form) {
      const table = ROLES_TABLES[form];
      const jobs = subscribe(table, "jobs", () => deadLetter("no use"), { deadLetter: "dead" });
      const dead = subscribe(table, "dead", () => ack());
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs, dead));
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      await test.advance({ seconds: 3 });
      test.subscriber(jobs).assertCalledOnce();
      test.subscriber(dead).assertCalledOnce().assertReceived({ name: "a" });
      assert.equal(test.deliveries[1]?.attempt, 1, "its attempts begin anew");
      assert.deepEqual(await values(test, "id"), []);
    },
  },
  {
    name: "deadLetter without a place for it is a failure, and nothing is lost",
    async run(database, form) {
      const table = ROLES_TABLES[form];
      const jobs = subscribe(
        table,
        "jobs",
        (_, { attempt }) => attempt === 1 ? deadLetter() : ack(),
      );
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      assert(test.deliveries[0]?.error instanceof DeclarationError);
      await test.advance({ seconds: 3 });
      test.subscriber(jobs).assertCalled(2).assertSettled(ack());
    },
  },
  {
    name: "other columns are published beside the message",
    async run(database, form) {
      const table = ROLES_TABLES[form];
      await using test = await TestApp.start(rolesService(database.connect(), table));
      await test.query("ALTER TABLE jobs ADD COLUMN note VARCHAR(20)");
      await test.query("ALTER TABLE jobs ADD COLUMN amount BIGINT");
      const columns = { note: "été", amount: 9007199254740993n };
      await test.publish(queueOf(table, "jobs"), { name: "a" }, { columns });
      assert.deepEqual(await values(test, "note"), ["été"]);
      assert.deepEqual((await values(test, "amount")).map(String), ["9007199254740993"]);
      await assert.rejects(
        test.publish(queueOf(table, "jobs"), { name: "a" }, { columns: { attempt: 3 } }),
        DeclarationError,
      );
    },
  },
  {
    name: "as many messages as workers are in work",
    async run(database, form) {
      const table = ROLES_TABLES[form];
      const jobs = subscribe(table, "jobs", () => sleep(1_000), { workers: 4 });
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      for (let n = 0; n < 10; n++) {
        await test.publish(queueOf(table, "jobs"), { name: `${n}` }, { priority: n % 3 });
      }
      assert.equal(test.deliveries.length, 4);
      await test.advance({ seconds: 4 });
      assert.equal(new Set(test.deliveries.map(({ id }) => id)).size, 10);
      assert.equal(test.deliveries.length, 10);
      assert.deepEqual(await values(test, "id"), []);
    },
  },
];

async function values(test: TestApp, column: string) {
  return (await test.query("SELECT * FROM jobs ORDER BY id")).map((row) => row[column]);
}

/** The tests, in each form. */
export const rolesTests: readonly ConformanceTest[] =
  (["row lock", "lease", "advisory lock"] as const).flatMap((form) =>
    tests.map(({ name, run }): ConformanceTest => ({
      name: `${form}: ${name}`,
      ...(form === "row lock" ? { needs: "row locks" } : {}),
      run: (database) => run(database, form),
    }))
  );
