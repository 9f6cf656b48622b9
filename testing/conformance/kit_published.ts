import assert from "node:assert/strict";
import {
  ack,
  App,
  Broker,
  type Delivery,
  type Driver,
  type Outcome,
  retry,
  retryAfter,
  type Subscription,
  TestApp,
} from "./holdfast.ts";
import { FULL_MARKED_TABLES, FULL_TABLES, type FullInbox } from "./full_service.ts";
import { type FormTest, inEachForm } from "./in_each_form.ts";
import type { Job } from "./lease_service.ts";
import { inOwnTransaction } from "./in_own_transaction.ts";
import { queueOf, subscribe } from "./roles_service.ts";
import type { ConformanceTest } from "./test_database.ts";

type Handle = (job: Job, delivery: Delivery<number, true>) => Promise<Outcome | void>;

/** A service whose handler publishes in its transaction. */
interface Replying {
  readonly test: TestApp;
  readonly broker: Broker;
  readonly table: FullInbox;
  readonly jobs: Subscription<Job>;
}

async function startReplying(
  driver: Driver,
  table: FullInbox,
  handle: Handle = () => Promise.resolve(ack()),
): Promise<Replying> {
  const jobs = table.queue("jobs").subscribe(
    { transactional: true, pollInterval: 500 },
    handle,
  ) as Subscription<Job>;
  const broker = new Broker(driver).createTables(table).include(jobs);
  const test = await TestApp.start(new App({ name: "suite" }).withBroker(broker));
  return { test, broker, table, jobs };
}

const tests: readonly FormTest[] = [
  {
    name: "what a transactional handler publishes is open until it is acked",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const replies = queueOf(table, "replies");
      const { test } = await startReplying(database.connect(), table, async (job, delivery) => {
        await delivery.publish(replies, { name: `re: ${job.name}` });
        return ack();
      });
      await using _ = test;
      using hold = test.holdAt("before settle");
      const [record] = await test.assertPublished(
        replies,
        { name: "re: a" },
        () => test.publish(queueOf(table, "jobs"), { name: "a" }),
      );
      assert.equal(record?.fate, "open");
      test.published(replies).assertPublishedOnce().assertMessage({ name: "re: a" });
      assert.deepEqual(test.published(replies).rolledBack(), []);
      assert.match(
        String(test.trace),
        /replies: published \d+ by message \d+ of queue "jobs" \(not committed yet\)$/m,
      );
      await hold.release();
      assert.equal(record.fate, "committed");
      assert.doesNotMatch(String(test.trace), /not committed yet/);
      assert.equal((await test.query("SELECT id FROM jobs")).length, 1);
    },
  },
  {
    name: "what a transactional handler that fails has published is told as rolled back",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const replies = queueOf(table, "replies");
      const { test, jobs } = await startReplying(
        database.connect(),
        table,
        async (_, delivery) => {
          await delivery.publish(replies, { name: `try ${delivery.attempt}` });
          if (delivery.attempt === 1) throw new Error("No luck");
          return delivery.attempt === 2 ? retryAfter({ hours: 1 }) : ack();
        },
      );
      await using _ = test;
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      await test.drain({ until: { hours: 3 } });
      const published = test.published(replies);
      assert.deepEqual(published.rolledBack(), [{ name: "try 1" }, { name: "try 2" }]);
      assert.deepEqual(published.messages(), [{ name: "try 3" }]);
      published.assertPublishedOnce().assertMessage({ name: "try 3" });
      assert.throws(() => published.assertMessage({ name: "try 1" }), assert.AssertionError);
      assert.match(String(test.trace), /replies: published \d+ by .* \(rolled back\)/);
      assert.deepEqual(test.subscriber(jobs).errors().map(({ message }) => message), ["No luck"]);
      const rows = await test.query("SELECT payload FROM jobs");
      assert.equal(rows.length, 1);
      assert.match(String(rows[0]?.payload), /try 3/);
    },
  },
  {
    name: "publishes in a broker's transaction are told as committed, or as rolled back",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const { test, broker, jobs } = await startReplying(database.connect(), table);
      await using _ = test;
      const queue = queueOf(table, "jobs");
      const fates: unknown[] = [];
      const records = await test.assertPublished(
        queue,
        ({ name }) => name !== "c",
        () =>
          broker.transaction(async (tx) => {
            await broker.publish(queue, { name: "a" }, { tx });
            await broker.publishMany(queue, [{ name: "b" }, { name: "c" }], { tx });
            fates.push(
              ...test.trace.entries.map(({ event }) =>
                event.type === "published" ? event.publish.fate : event.type
              ),
            );
          }),
      );
      assert.deepEqual(fates, ["open", "open", "open"]);
      assert.deepEqual(records.map(({ message, fate }) => [message, fate]), [
        [{ name: "a" }, "committed"],
        [{ name: "b" }, "committed"],
      ]);
      await test.settled();
      test.subscriber(jobs).assertCalled(3);
      const [gone] = await test.assertPublished(queue, { name: "d" }, async () => {
        const failing = broker.transaction(async (tx) => {
          await broker.publish(queue, { name: "d" }, { tx });
          throw new Error("No luck");
        });
        await assert.rejects(failing, /No luck/);
      });
      assert.equal(gone?.fate, "rolled back");
      await test.advance({ minutes: 1 });
      test.subscriber(jobs).assertCalled(3);
      assert.deepEqual(test.published(queue).rolledBack(), [{ name: "d" }]);
      test.published(queue).assertPublished(3);
    },
  },
  {
    name:
      "publishes of many, of which some have a key that is taken, are told as they are inserted",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const { test, broker, jobs } = await startReplying(database.connect(), table);
      await using _ = test;
      const queue = queueOf(table, "jobs");
      await broker.publish(queue, { name: "first" }, { uniqueKey: "a", delay: { hours: 1 } });
      const names = ["a", "b", "c"];
      const published = await broker.publishMany(queue, names.map((name) => ({ name })), {
        each: ({ name }) => ({ uniqueKey: name, delay: { hours: 1 } }),
      });
      assert.deepEqual(published.map(({ inserted }) => inserted), [false, true, true]);
      await test.publish(queue, { name: "again" }, { uniqueKey: "b" });
      assert.deepEqual(
        test.published(queue).messages(),
        [{ name: "first" }, { name: "b" }, { name: "c" }],
      );
      await test.drain();
      test.subscriber(jobs).assertCalled(3);
    },
  },
  {
    name: "what a transaction of the caller's own has published counts, its fate not known",
    needs: "connections",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const { test, broker, jobs } = await startReplying(database.connect(), table);
      await using _ = test;
      const queue = queueOf(table, "jobs");
      const [record] = await test.assertPublished(
        queue,
        { name: "a" },
        () =>
          inOwnTransaction(database, async (tx) => {
            await broker.publish(queue, { name: "a" }, { tx: tx as never });
          }),
      );
      assert.equal(record?.fate, "unknown");
      assert.match(
        String(test.trace),
        /jobs: published \d+ \(in a transaction of the caller's\)/,
      );
      test.published(queue).assertPublishedOnce();
      await test.advance({ seconds: 2 });
      test.subscriber(jobs).assertCalledOnce().assertReceived({ name: "a" });
    },
  },
  {
    name: "a slot that a schedule publishes is told as others are",
    async run(database, form) {
      const table = FULL_MARKED_TABLES[form];
      const ticks = subscribe(table, "ticks", () => ack());
      const broker = new Broker(database.connect()).createTables(table).include(ticks);
      const app = new App({ name: "suite" }).withBroker(broker)
        .schedule("0 * * * *", queueOf(table, "ticks"), (slot) => ({ name: slot.toISOString() }));
      await using test = await TestApp.start(app, { now: Date.UTC(2030, 0, 1, 0, 30) });
      const queue = queueOf(table, "ticks");
      test.published(queue).assertNotPublished();
      const [record, ...more] = await test.assertPublished(
        queue,
        ({ name }) => name.endsWith("T01:00:00.000Z"),
        () => test.advance({ hours: 2 }),
      );
      assert.deepEqual([record?.fate, more.length], ["committed", 0]);
      test.published(queue).assertPublished(2)
        .assertMessage({ name: "2030-01-01T02:00:00.000Z" });
      await test.assertNotPublished(queue, {}, () => test.advance({ minutes: 20 }));
      test.subscriber(ticks).assertCalled(2);
    },
  },
  {
    name: "an assertion on publishes that fails says what was published instead, and what happened",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const { test } = await startReplying(
        database.connect(),
        table,
        () => Promise.resolve(retry()),
      );
      await using _ = test;
      const queue = queueOf(table, "later");
      const publish = () => test.publish(queue, { name: "a" });
      const missing = test.assertPublished(queue, { name: "b" }, publish);
      await assertFails(
        missing,
        /^Expected of queue "later": a publish in the block that matches \{ name: 'b' \}, but found: \[ \{ name: 'a' \} \]\nWhat happened:\n\+0\.\d{3} s {2}later: published \d+$/,
      );
      await assertFails(
        test.assertPublished(queue, { name: "b" }, () => {}),
        /a publish in the block that matches \{ name: 'b' \}, but found: \[\]\nWhat happened:/,
      );
      await assertFails(
        test.assertPublished(queue, function isLong({ name }) {
          return name.length > 5;
        }, publish),
        /a publish in the block that matches \[Function: isLong\], but found: \[ \{ name: 'a' \} \]/,
      );
      await assertFails(
        test.assertNotPublished(queue, { name: "a" }, publish),
        /Expected of queue "later": no publish in the block that matches .*, but found: \[ \{ name: 'a' \} \]/,
      );
      await assert.rejects(
        test.assertNotPublished(queue, {}, () => {
          throw new TypeError("of the block");
        }),
        /^TypeError: of the block$/,
      );
      const published = test.published(queue);
      for (
        const [assertion, message] of [
          [() => published.assertPublishedOnce(), /: 1 message published, but found: 3\n/],
          [() => published.assertPublished(2), /: 2 messages published, but found: 3\n/],
          [() => published.assertNotPublished(), /: 0 messages published, but found: 3\n/],
          [
            () => published.assertMessage({ name: "b" }),
            /a publish of \{ name: 'b' \}, but found: \[ \{ name: 'a' \}, \{ name: 'a' \}, \{ name: 'a' \} \]/,
          ],
        ] as const
      ) await assertFails(Promise.resolve().then(assertion), message);
    },
  },
  {
    name: "the calls of a batch's handler are told with their messages, and the errors of each",
    async run(database, form) {
      const table = FULL_TABLES[form];
      let calls = 0;
      const jobs = table.queue("jobs").subscribe({ batch: 3, pollInterval: 60_000 }, () => {
        if (++calls === 1) throw new Error("No luck");
        return ack();
      }) as unknown as Subscription<Job>;
      const broker = new Broker(database.connect()).createTables(table).include(jobs);
      await using test = await TestApp.start(new App({ name: "suite" }).withBroker(broker));
      const names = ["a", "b", "c"].map((name) => ({ name }));
      await broker.publishMany(queueOf(table, "jobs"), names);
      await test.drain();
      const subscriber = test.subscriber(jobs);
      assert.deepEqual(subscriber.errors().map(({ message }) => message), [
        ...Array(3).fill("No luck"),
      ]);
      const [first, ...alone] = subscriber.batches();
      assert.deepEqual(first, names);
      assert(alone.every(({ length }) => length === 1));
      assert.deepEqual(alone.flat().map(({ name }) => name).toSorted(), ["a", "b", "c"]);
      assert.equal(subscriber.received().length, 6);
      assert.equal(subscriber.outcomes().filter(({ kind }) => kind === "ack").length, 3);
      subscriber.assertCalled(4);
    },
  },
];

async function assertFails(failing: Promise<unknown>, message: RegExp): Promise<void> {
  await assert.rejects(failing, (error: unknown) => {
    assert(error instanceof assert.AssertionError, String(error));
    assert.match(error.message, message);
    return true;
  });
}

/** What is told of messages that are published, and what assertions on them say. */
export const kitPublishedTests: readonly ConformanceTest[] = inEachForm(tests);
