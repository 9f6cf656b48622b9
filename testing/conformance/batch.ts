import assert from "node:assert/strict";
import {
  ack,
  type Delivery,
  drop,
  type Form,
  type Outcome,
  retryAfter,
  TestApp,
} from "./holdfast.ts";
import { FULL_TABLES } from "./full_service.ts";
import { type FormTest, inEachForm } from "./in_each_form.ts";
import type { Job } from "./lease_service.ts";
import { queueOf, rolesService } from "./roles_service.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

type Handle = (
  names: readonly string[],
  deliveries: readonly Delivery[],
) => Outcome | void | (Outcome | undefined)[] | Promise<void>;

/** A running service whose handler takes batches of four, and the batches that it got. */
async function start(
  database: TestDatabase,
  form: Form,
  handle: Handle,
  more: { readonly maxAttempts?: number; readonly deadLetter?: string } = {},
) {
  const table = FULL_TABLES[form];
  const batches: string[][] = [];
  const options = { batch: 4, pollInterval: 500, backoff: { first: 1_000, cap: 2_000 }, ...more };
  const jobs = table.queue("jobs").subscribe(options, (messages, deliveries) => {
    const names = messages.map(({ name }: Job) => name);
    batches.push(names);
    return handle(names, deliveries);
  });
  const test = await TestApp.start(rolesService(database.connect(), table, jobs as never));
  const publish = async (names: readonly string[]): Promise<void> => {
    // The first keeps the worker busy, so that the others are there together.
    await test.publish(queueOf(table, "jobs"), { name: "first" });
    for (const name of names) await test.publish(queueOf(table, "jobs"), { name });
  };
  return { test, batches, publish, rest: () => test.query("SELECT * FROM jobs ORDER BY id") };
}

const NAMES = ["a", "b", "c", "d", "e", "f"];

const tests: readonly FormTest[] = [
  {
    name: "a batch handler gets as many messages as there are, in order, at most so many at once",
    async run(database, form) {
      const service = await start(database, form, async (names) => {
        if (names[0] === "first") await sleep(1_000);
      });
      await using test = service.test;
      await service.publish(NAMES);
      await test.advance({ seconds: 3 });
      assert.deepEqual(service.batches, [["first"], ["a", "b", "c", "d"], ["e", "f"]]);
      assert.deepEqual(await service.rest(), []);
      assert(test.deliveries.every(({ outcome, settled }) => settled && outcome?.kind === "ack"));
    },
  },
  {
    name: "a batch handler decides for all of its messages or for each",
    async run(database, form) {
      const service = await start(database, form, async (names): Promise<never> => {
        if (names[0] === "first") await sleep(1_000);
        const outcomes = names.map((name) =>
          ({ a: drop("a"), b: retryAfter({ hours: 1 }, "b"), c: undefined })[name] ?? ack()
        );
        return (names.length > 2 ? outcomes : ack()) as never;
      });
      await using test = service.test;
      await service.publish(NAMES);
      await test.advance({ seconds: 3 });
      const left = await service.rest();
      assert.deepEqual(left.map(({ last_error: error }) => error), ["b"]);
      assert.deepEqual(left.map(({ attempt }) => Number(attempt)), [2]);
    },
  },
  {
    name: "one message that makes its batch fail does not keep the others from being handled",
    async run(database, form) {
      const service = await start(database, form, async (names) => {
        if (names[0] === "first") await sleep(1_000);
        if (names.includes("b")) throw new Error("No b, please");
      });
      await using test = service.test;
      await service.publish(NAMES);
      await test.advance({ seconds: 20 });
      const left = await service.rest();
      assert.deepEqual(left.map(({ payload }) => JSON.parse(String(payload)).name), ["b"]);
      assert.equal(left[0]?.last_error, "No b, please");
      const failed = service.batches.filter((names) => names.includes("b"));
      assert.equal(failed[0]!.length > 1, true);
      assert(failed.slice(1).every(({ length }) => length === 1), "alone from then on");
    },
  },
  {
    name: "a batch that fails at the last attempt of its messages takes none of them down",
    async run(database, form) {
      const service = await start(database, form, async (names) => {
        if (names[0] === "first") await sleep(1_000);
        if (names.includes("b")) throw new Error("No b, please");
      }, { maxAttempts: 1, deadLetter: "dead" });
      await using test = service.test;
      await service.publish(NAMES);
      await test.advance({ seconds: 20 });
      const left = await service.rest();
      assert.deepEqual(
        left.map(({ queue, payload }) => [queue, JSON.parse(String(payload)).name]),
        [["dead", "b"]],
      );
      assert.deepEqual(service.batches.filter((names) => names.includes("b")).length, 2);
    },
  },
  {
    name: "a message of a batch that cannot be decoded fails by itself",
    async run(database, form) {
      const service = await start(database, form, async (names) => {
        if (names[0] === "first") await sleep(1_000);
      });
      await using test = service.test;
      await service.publish(["a"]);
      await test.query(`INSERT INTO jobs (queue, payload) VALUES ('jobs', 'no json')`);
      await test.advance({ seconds: 2 });
      assert.deepEqual(service.batches, [["first"], ["a"]]);
      assert.equal((await service.rest()).length, 1);
    },
  },
  {
    name: "a batch handler that returns too few outcomes has failed",
    async run(database, form) {
      const service = await start(database, form, async (names): Promise<never> => {
        if (names[0] === "first") await sleep(1_000);
        return (names.length === 3 ? [ack()] : ack()) as never;
      });
      await using test = service.test;
      await service.publish(["a", "b", "c"]);
      await test.advance({ seconds: 10 });
      assert.match(
        String(test.deliveries[1]?.error),
        /returned 1 outcome for 3 messages \([^)]+\); return one for all, or one for each/,
      );
      assert.deepEqual(await service.rest(), []);
    },
  },
];

/** What batch handlers promise, in each form. */
export const batchTests: readonly ConformanceTest[] = inEachForm(tests);
