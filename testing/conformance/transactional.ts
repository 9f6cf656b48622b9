import assert from "node:assert/strict";
import {
  ack,
  App,
  Broker,
  DeclarationError,
  type Delivery,
  drop,
  type Outcome,
  retry,
  retryAfter,
  type Subscription,
  TestApp,
} from "./holdfast.ts";
import { FULL_MARKED_TABLES, FULL_TABLES, type FullInbox } from "./full_service.ts";
import { type FormTest, inEachForm } from "./in_each_form.ts";
import type { Job } from "./lease_service.ts";
import { queueOf, rolesService, subscribe } from "./roles_service.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

type Handle = (job: Job, delivery: Delivery<number, true>) => Promise<Outcome | void>;

/** A handler that writes a note in its transaction, and then does what it is to do. */
function notes(
  database: TestDatabase,
  table: FullInbox,
  then: Handle,
  options: { readonly timeout?: number; readonly lease?: number } = {},
): Subscription<Job> {
  const all = { transactional: true, pollInterval: 500, ...options } as const;
  return table.queue("jobs").subscribe(all, async (job, delivery) => {
    await database.write(delivery, `INSERT INTO notes (note) VALUES ('${job.name}')`);
    return await then(job, delivery);
  }) as Subscription<Job>;
}

async function start(
  database: TestDatabase,
  table: FullInbox,
  ...subscriptions: readonly Subscription<Job>[]
): Promise<TestApp> {
  const test = await TestApp.start(rolesService(database.connect(), table, ...subscriptions));
  await test.query("CREATE TABLE notes (note VARCHAR(100))");
  return test;
}

const tests: readonly FormTest[] = [
  {
    name: "a transactional handler's writes are committed by ack, with the end of its message",
    async run(database, form) {
      for (const table of [FULL_TABLES[form], FULL_MARKED_TABLES[form]]) {
        const jobs = notes(database, table, () => Promise.resolve(ack()));
        await using test = await start(database, table, jobs);
        for (const name of ["a", "b"]) await test.publish(queueOf(table, "jobs"), { name });
        await test.advance({ seconds: 3 });
        assert.deepEqual(await found(test), ["a", "b"]);
        test.subscriber(jobs).assertCalled(2).assertSettled(ack());
        await dropTables(test);
      }
    },
  },
  {
    name: "with every other outcome, and after an error, they are rolled back, the attempt counted",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const ends: Record<string, () => Outcome> = {
        retry,
        retryAfter: () => retryAfter(1_000, "later"),
        throw: () => {
          throw new Error("No luck");
        },
      };
      const jobs = notes(database, table, ({ name }, { attempt }) => {
        return Promise.resolve(attempt === 1 ? ends[name]!() : undefined);
      });
      await using test = await start(database, table, jobs);
      for (const name of Object.keys(ends)) await test.publish(queueOf(table, "jobs"), { name });
      await test.advance({ seconds: 10 });
      assert.deepEqual((await found(test)).toSorted(), Object.keys(ends).toSorted());
      test.subscriber(jobs).assertCalled(6);
    },
  },
  {
    name: "a message that a transactional handler drops takes its writes with it",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const jobs = notes(database, table, () => Promise.resolve(drop("Not wanted")));
      await using test = await start(database, table, jobs);
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      await test.advance({ seconds: 3 });
      assert.deepEqual(await found(test), []);
      assert.deepEqual(await test.query("SELECT id FROM jobs"), []);
    },
  },
  {
    name: "a transactional handler that takes too long is rolled back, even if it acks",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const jobs = notes(database, table, async (_, { signal, attempt }) => {
        if (attempt === 1) await until(signal);
        return ack();
      }, { timeout: 1_000 });
      await using test = await start(database, table, jobs);
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      await test.advance({ seconds: 5 });
      test.subscriber(jobs).assertCalled(2);
      assert.deepEqual(await found(test), ["a"]);
    },
  },
  {
    name: "a transactional handler that is cut short by a shutdown is rolled back",
    needs: "connections",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const jobs = notes(database, table, async (_, { signal }) => {
        await until(signal);
        return ack();
      });
      const broker = new Broker(database.connect()).createTables(table).include(jobs);
      const app = new App({ name: "suite", drain: 100, abortTimeout: 2_000 }).withBroker(broker);
      await using watcher = await start(database, table);
      const running = await app.start();
      await app.publish(queueOf(table, "jobs"), { name: "a" });
      await sleep(300);
      await running.stop();
      assert.deepEqual(await found(watcher), []);
      const [row] = await watcher.query("SELECT attempt FROM jobs");
      assert.equal(Number(row?.attempt), form === "row lock" ? 1 : 2);
    },
  },
  {
    name: "a transactional handler whose lease is lost is rolled back, and cannot write any more",
    forms: ["lease"],
    async run(database) {
      const table = FULL_TABLES.lease;
      const errors: unknown[] = [];
      const jobs = notes(database, table, async (_, delivery) => {
        if (delivery.attempt > 1) return ack();
        await until(delivery.signal);
        await sleep(100);
        await database.write(delivery, "INSERT INTO notes (note) VALUES ('late')")
          .catch((error) => errors.push(error));
        return ack();
      }, { lease: 2_000 });
      await using test = await start(database, table, jobs);
      test.pauseRenewals();
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      await test.advance({ seconds: 6 });
      test.resumeRenewals();
      await test.advance({ seconds: 10 });
      assert.equal(errors.length, 1);
      assert(test.deliveries[0]?.error instanceof Error);
      assert.deepEqual(await found(test), ["a"]);
    },
  },
  {
    name: "what a transactional handler publishes is there if, and only if, it acks",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const jobs = notes(database, table, async ({ name }, delivery) => {
        const { id } = await delivery.publish(table.queue("replies"), { name: `re: ${name}` });
        assert.notEqual(id, undefined);
        return delivery.attempt === 1 ? retryAfter(2_000) : ack();
      });
      const replies = subscribe(table, "replies", () => ack());
      await using test = await start(database, table, jobs, replies);
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      await test.advance({ seconds: 1 });
      test.subscriber(replies).assertNotCalled();
      await test.advance({ seconds: 6 });
      test.subscriber(replies).assertCalledOnce().assertReceived({ name: "re: a" });
    },
  },
  {
    name: "delivery.settle(ack()) commits what a transactional handler has written",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const jobs = notes(database, table, async (_, delivery) => {
        await delivery.settle(ack());
        await assert.rejects(database.write(delivery, "INSERT INTO notes (note) VALUES ('late')"));
      });
      await using test = await start(database, table, jobs);
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      await test.advance({ seconds: 3 });
      assert.deepEqual(await found(test), ["a"]);
    },
  },
  {
    name: "a statement that fails in a transaction, its error swallowed, commits nothing by halves",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const jobs = notes(database, table, async ({ name }, delivery) => {
        if (delivery.attempt > 1) return ack();
        const text = name === "rollback" ? "ROLLBACK" : "INSERT INTO no_such_table (a) VALUES (1)";
        await database.write(delivery, text).catch(() => {});
        return ack();
      });
      await using test = await start(database, table, jobs);
      for (const name of ["broken", "rollback"]) {
        await test.publish(queueOf(table, "jobs"), { name });
      }
      await test.advance({ seconds: 10 });
      // Postgres fails the whole transaction, others the statement: either way it is all or nothing.
      assert.deepEqual((await found(test)).toSorted(), ["broken", "rollback"]);
      assert.deepEqual(await test.query("SELECT id FROM jobs"), []);
    },
  },
  {
    name: "nothing can be published or written through a delivery that has ended",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const late: Promise<string>[] = [];
      const told = (work: Promise<unknown>) => work.then(() => "done", () => "refused");
      const jobs = notes(database, table, async ({ name }, delivery) => {
        const publish = () => delivery.publish(table.queue("others"), { name });
        if (name === "settles") {
          await delivery.settle(retryAfter({ hours: 1 }));
          late.push(told(publish()));
          return;
        }
        // Nobody waits for it: it is part of the transaction all the same, which is rolled back.
        if (name === "throws") {
          publish();
          throw new Error("No luck");
        }
        setTimeout(() => {
          late.push(told(publish()), told(database.write(delivery, "DELETE FROM notes")));
        }, 100);
        return retryAfter({ hours: 1 });
      });
      await using test = await start(database, table, jobs);
      for (const name of ["settles", "throws", "returns"]) {
        await test.publish(queueOf(table, "jobs"), { name });
      }
      await test.advance({ milliseconds: 900 });
      assert.deepEqual(await Promise.all(late), Array(3).fill("refused"));
      const left = await test.query("SELECT queue FROM jobs");
      assert(left.every(({ queue }) => queue === "jobs"), "no message of theirs is there");
    },
  },
];

/** SQLite has one writer: who would wait for itself is told so. */
const oneWriter: ConformanceTest = {
  name:
    "a publish from inside a transaction waits for it, or is refused where that would be for ever",
  async run(database) {
    const table = FULL_TABLES.lease;
    const driver = database.connect();
    const broker = new Broker(driver).createTables(table);
    const errors: unknown[] = [];
    const jobs = notes(database, table, async (_, delivery) => {
      await broker.publish(queueOf(table, "others"), { name: "b" }).catch((e) => errors.push(e));
      return delivery.attempt === 1 ? ack() : ack();
    });
    await using test = await TestApp.start(
      new App({ name: "suite" }).withBroker(broker.include(jobs)),
    );
    await test.query("CREATE TABLE notes (note VARCHAR(100))");
    await test.publish(queueOf(table, "jobs"), { name: "a" });
    await test.advance({ seconds: 3 });
    assert.deepEqual(await found(test), ["a"]);
    const isRefused = driver.hasOneWriter === true;
    assert.deepEqual(
      errors.map((error) => error instanceof DeclarationError),
      isRefused ? [true] : [],
    );
    assert.equal((await test.query("SELECT id FROM jobs")).length, isRefused ? 0 : 1);
  },
};

/** Sleeps until the signal aborts. */
async function until(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await sleep(50);
}

async function found(test: TestApp): Promise<readonly string[]> {
  return (await test.query("SELECT note FROM notes")).map(({ note }) => String(note));
}

async function dropTables(test: TestApp): Promise<void> {
  for (const table of ["notes", "jobs"]) await test.query(`DROP TABLE ${table}`);
}

/** What transactional handlers promise, in each form. */
export const transactionalTests: readonly ConformanceTest[] = [...inEachForm(tests), oneWriter];
