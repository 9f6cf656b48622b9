import assert from "node:assert/strict";
import {
  ack,
  App,
  Broker,
  type Driver,
  drop,
  type Outcome,
  retryAfter,
  type SubscribeOptions,
  type Subscription,
  TestApp,
} from "./holdfast.ts";
import { FULL_MARKED_TABLES, FULL_TABLES } from "./full_service.ts";
import { type FormTest, inEachForm } from "./in_each_form.ts";
import { inOwnTransaction } from "./in_own_transaction.ts";
import type { Job } from "./lease_service.ts";
import { queueOf, rolesService, subscribe } from "./roles_service.ts";
import type { ConformanceTest } from "./test_database.ts";

const TABLE = FULL_TABLES.lease;
const JOBS = queueOf(TABLE, "jobs");
const REPLIES = queueOf(TABLE, "replies");

/** An app, and its broker, through which the test publishes too. */
function service(
  driver: Driver,
  ...jobs: readonly Subscription<Job>[]
): { readonly app: App; readonly broker: Broker } {
  const broker = new Broker(driver).createTables(TABLE).include(...jobs);
  return { app: new App({ name: "suite" }).withBroker(broker), broker };
}

function fates(test: TestApp): readonly string[] {
  return test.trace.entries.flatMap(({ event }) =>
    event.type === "published" ? [event.publish.fate] : []
  );
}

const formTests: readonly FormTest[] = [
  {
    name: "what a transactional handler publishes counts unless it is rolled back",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const outcomes: Readonly<Record<string, () => Outcome>> = {
        ack,
        drop,
        retry: () => retryAfter({ hours: 1 }),
        error: () => {
          throw new Error("No luck");
        },
      };
      const seen: (string | undefined)[] = [];
      const all: SubscribeOptions<typeof form, "jobs"> & { readonly transactional: true } = {
        transactional: true,
        pollInterval: 500,
      };
      const jobs = table.queue("jobs").subscribe(all, async ({ name }, delivery) => {
        await delivery.publish(table.queue("replies"), { name });
        seen.push(fates(test).at(-1));
        return outcomes[name]!();
      }) as Subscription<Job>;
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      for (const name of Object.keys(outcomes)) {
        await test.publish(queueOf(table, "jobs"), { name });
      }
      assert.deepEqual(seen, ["open", "open", "open", "open"]);
      const published = test.published(queueOf(table, "replies")).assertPublishedOnce();
      assert.deepEqual(published.assertMessage({ name: "ack" }).messages(), [{ name: "ack" }]);
      const undone = published.rolledBack().map(({ name }) => name);
      assert.deepEqual(undone, ["drop", "retry", "error"]);
      const trace = String(test.trace);
      assert.equal(trace.match(/replies: published \d+ by message .* \(rolled back\)/g)?.length, 3);
      assert.doesNotMatch(trace, /not committed yet/);
      const [error] = test.subscriber(jobs).errors();
      assert.match(String(error), /No luck/);
    },
  },
  {
    name: "the messages of a batch stand together, and errors in the order of deliveries",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const options: SubscribeOptions<typeof form, "jobs"> & { readonly batch: number } = {
        batch: 3,
        pollInterval: 500,
      };
      const jobs = table.queue("jobs").subscribe(options, (messages) => {
        if (messages.some(({ name }) => name === "bad")) throw new Error(`${messages.length} bad`);
        return ack();
      }) as unknown as Subscription<Job>;
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      for (const name of ["a", "b", "bad", "c"]) {
        await test.query(
          "INSERT INTO jobs (queue, attempt, payload, priority) " +
            `VALUES ('jobs', 1, '{"name":"${name}"}', 0)`,
        );
      }
      await test.advance({ minutes: 10 });
      const subscriber = test.subscriber(jobs);
      const calls = subscriber.batches().map((batch) => batch.map(({ name }) => name).join(""));
      const sizes = calls.map((_, index) => subscriber.batches()[index]!.length);
      assert(sizes.every((size) => size >= 1 && size <= 3));
      assert.deepEqual(subscriber.received(), subscriber.batches().flat());
      assert.equal(calls.filter((call) => call === "bad").length > 0, true);
      subscriber.assertReceived({ name: "c" }).assertCalled(calls.length);
      assert(subscriber.errors().every(({ message }) => /^[123] bad$/.test(message)));
      assert.equal(subscriber.outcomes().filter(({ kind }) => kind === "ack").length, 3);
      // What was published past the app is not its own.
      test.published(queueOf(table, "jobs")).assertNotPublished();
    },
  },
];

const tests: readonly ConformanceTest[] = [
  {
    name: "what is published in a broker's transaction has the fate of that",
    async run(database) {
      const { app, broker } = service(database.connect());
      await using test = await TestApp.start(app);
      await broker.transaction(async (tx) => {
        await broker.publish(JOBS, { name: "a" }, { tx });
        assert.deepEqual(fates(test), ["open"]);
      });
      await assert.rejects(
        broker.transaction(async (tx) => {
          await broker.publishMany(JOBS, [{ name: "b" }, { name: "c" }], { tx });
          throw new Error("Not after all");
        }),
        /Not after all/,
      );
      assert.deepEqual(fates(test), ["committed", "rolled back", "rolled back"]);
      test.published(JOBS).assertPublishedOnce().assertMessage({ name: "a" });
      assert.deepEqual(test.published(JOBS).rolledBack(), [{ name: "b" }, { name: "c" }]);
      assert.match(String(test.trace), /jobs: published \d+ \(rolled back\)/);
    },
  },
  {
    name: "of many messages those count that were inserted",
    async run(database) {
      const { app, broker } = service(database.connect());
      await using test = await TestApp.start(app);
      const unique = { each: ({ name }: Job) => ({ uniqueKey: name }) };
      await broker.publishMany(JOBS, [{ name: "a" }, { name: "b" }], unique);
      await broker.publishMany(JOBS, [{ name: "b" }, { name: "c" }], unique);
      assert.equal((await test.publish(JOBS, { name: "d" }, { uniqueKey: "a" })).inserted, false);
      assert.deepEqual(test.published(JOBS).messages(), [
        { name: "a" },
        { name: "b" },
        { name: "c" },
      ]);
      assert.deepEqual(fates(test), ["committed", "committed", "committed"]);
      assert.equal((await test.query("SELECT id FROM jobs")).length, 3);
    },
  },
  {
    name: "what is published in a client's own transaction counts, its fate unknown",
    needs: "connections",
    async run(database) {
      const { app, broker } = service(database.connect());
      await using test = await TestApp.start(app);
      await inOwnTransaction(
        database,
        (tx) => broker.publish(JOBS, { name: "a" }, { tx }),
        "rollback",
      );
      assert.deepEqual(fates(test), ["unknown"]);
      test.published(JOBS).assertPublishedOnce();
      assert.match(String(test.trace), /published \d+ \(in a transaction of the caller's\)/);
      assert.deepEqual(await test.query("SELECT id FROM jobs"), []);
    },
  },
  {
    name: "what a schedule publishes is seen, once a slot",
    async run(database) {
      const table = FULL_MARKED_TABLES.lease;
      const queue = queueOf(table, "jobs");
      const app = rolesService(database.connect(), table)
        .schedule("* * * * *", queue, (slot) => ({ name: slot.toISOString() }));
      const now = Date.UTC(2030, 0, 1, 0, 0, 30);
      await using test = await TestApp.start(app, { now });
      const [first] = await test.assertPublished(
        queue,
        { name: "2030-01-01T00:01:00.000Z" },
        () => {
          return test.advance({ minutes: 1 });
        },
      );
      assert.equal(first?.fate, "committed");
      await test.assertNotPublished(queue, () => true, () => test.advance({ seconds: 20 }));
      test.published(queue).assertPublishedOnce();
    },
  },
  {
    name: "a block that publishes gives its matching messages, with their fates",
    async run(database) {
      const jobs = TABLE.queue("jobs").subscribe(
        { transactional: true },
        async ({ name }, delivery) => {
          await delivery.publish(REPLIES, { name: `re: ${name}` });
          if (name === "bad") throw new Error("No luck");
          return ack();
        },
      ) as Subscription<Job>;
      const { app } = service(database.connect(), jobs);
      await using test = await TestApp.start(app);
      const good = () => test.publish(JOBS, { name: "good" });
      const bad = () => test.publish(JOBS, { name: "bad" });
      const [reply, ...none] = await test.assertPublished(REPLIES, { name: "re: good" }, good);
      assert.deepEqual([reply?.queue, reply?.fate, none], ["replies", "committed", []]);
      const [undone] = await test.assertPublished(REPLIES, ({ name }) => name.includes("bad"), bad);
      assert.equal(undone?.fate, "rolled back");
      await test.assertNotPublished(REPLIES, { name: "re: other" }, good);
      await test.assertNotPublished(REPLIES, () => true, () => {});
      const thrown = new Error("of the block");
      await assert.rejects(
        test.assertPublished(REPLIES, () => true, () => Promise.reject(thrown)),
        thrown,
      );
    },
  },
  {
    name: "an assertion of publishes that fails says what was published instead",
    async run(database) {
      const jobs = subscribe(TABLE, "jobs", () => ack());
      const { app } = service(database.connect(), jobs);
      await using test = await TestApp.start(app);
      const publish = () => test.publish(JOBS, { name: "a" });
      await assertFails(
        () => test.assertPublished(JOBS, { name: "b" }, publish),
        `Expected of queue "jobs": a publish in the block that matches { name: 'b' }, ` +
          `but found: [ { name: 'a' } ]`,
      );
      await assertFails(
        () => test.assertNotPublished(JOBS, { name: "a" }, publish),
        `Expected of queue "jobs": no publish in the block that matches { name: 'a' }, ` +
          `but found: [ { name: 'a' } ]`,
      );
      const published = test.published(JOBS);
      await assertFails(
        () => published.assertPublishedOnce(),
        `Expected of queue "jobs": 1 message published, but found: 2`,
      );
      await assertFails(
        () => published.assertNotPublished(),
        `Expected of queue "jobs": 0 messages published, but found: 2`,
      );
      await assertFails(
        () => published.assertMessage({ name: "c" }),
        `Expected of queue "jobs": a publish of { name: 'c' }, ` +
          `but found: [ { name: 'a' }, { name: 'a' } ]`,
      );
    },
  },
];

/** The message's first line, after which it tells what happened. */
async function assertFails(assertion: () => unknown, line: string): Promise<void> {
  await assert.rejects(async () => await assertion(), (error: unknown) => {
    assert(error instanceof assert.AssertionError);
    const [first, ...rest] = error.message.split("\n");
    assert.equal(first, line);
    assert.match(
      rest.join("\n"),
      /^What happened:\n\+0\.000 s {2}jobs: published \d+\n.* as ack$/s,
    );
    return true;
  });
}

/** What is known of the messages that an app publishes. */
export const publishedTests: readonly ConformanceTest[] = [...inEachForm(formTests), ...tests];
