import assert from "node:assert/strict";
import {
  ack,
  App,
  Broker,
  inbox,
  type MessageId,
  PayloadError,
  PublishError,
  row,
  TestApp,
} from "./holdfast.ts";
import { FULL_MARKED_TABLES, FULL_TABLES } from "./full_service.ts";
import { type FormTest, inEachForm } from "./in_each_form.ts";
import { queueOf, rolesService, subscribe } from "./roles_service.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest } from "./test_database.ts";

/** What publishing promises, whatever the form: tried in the lease form, which all databases have. */
const tests: readonly ConformanceTest[] = [
  {
    name: "headers come with the message, whatever they hold",
    async run(database) {
      const table = FULL_TABLES.lease;
      const seen: unknown[] = [];
      const jobs = subscribe(table, "jobs", (_, { headers }) => void seen.push(headers));
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      const headers = { trace: "a\r\nb", "été": "😀 \"'\\", empty: "" };
      await test.publish(queueOf(table, "jobs"), { name: "a" }, { headers });
      await test.publish(queueOf(table, "jobs"), { name: "b" });
      assert.deepEqual(seen, [headers, {}]);
      for (
        const bad of [
          { a: "\0" },
          { a: "\uD800" },
          { a: 1 as never },
          ["a"] as never,
          new Map() as never,
        ]
      ) {
        await assert.rejects(
          test.publish(queueOf(table, "jobs"), { name: "c" }, { headers: bad }),
          PayloadError,
        );
      }
      assert.equal((await rows(test)).length, 0);
    },
  },
  {
    name: "of messages with one unique key one is there, and each publish says which",
    async run(database) {
      const table = FULL_MARKED_TABLES.lease;
      await using test = await TestApp.start(rolesService(database.connect(), table));
      const [queue, other] = [queueOf(table, "jobs"), queueOf(table, "others")];
      const first = await test.publish(queue, { name: "a" }, { uniqueKey: "k" });
      const second = await test.publish(queue, { name: "b" }, { uniqueKey: "k" });
      assert.deepEqual([first.inserted, second], [true, { id: first.id, inserted: false }]);
      const elsewhere = await test.publish(other, { name: "c" }, { uniqueKey: "k" });
      const upper = await test.publish(queue, { name: "d" }, { uniqueKey: "K" });
      await assert.rejects(test.publish(queue, { name: "d" }, { uniqueKey: "k " }), TypeError);
      assert(elsewhere.inserted && upper.inserted);
      for (const name of ["e", "f"]) assert((await test.publish(queue, { name })).inserted);
      assert.equal((await rows(test)).length, 5);
    },
  },
  {
    name: "a key is free again when its row is gone",
    async run(database) {
      const table = FULL_TABLES.lease;
      const jobs = subscribe(table, "jobs", () => ack());
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      for (const name of ["a", "b"]) {
        const { inserted } = await test.publish(queueOf(table, "jobs"), { name }, {
          uniqueKey: "k",
        });
        assert(inserted);
      }
      test.subscriber(jobs).assertCalled(2);
    },
  },
  {
    name: "many messages are published in order, with the id of each",
    async run(database) {
      const table = FULL_TABLES.lease;
      await using broker = await new Broker(database.connect()).createTables(table).connect();
      const messages = Array.from({ length: 1_300 }, (_, n) => ({ name: `${n}` }));
      const published = await broker.publishMany(queueOf(table, "jobs"), messages, {
        priority: 3,
        each: ({ name }, index) => index % 10 === 0 ? { uniqueKey: name } : {},
      });
      assert(published.every(({ inserted }) => inserted));
      const found = await query(broker, "SELECT id, payload, priority FROM jobs ORDER BY id");
      const nameOf = new Map(found.map(({ id, payload }) => [
        String(id),
        JSON.parse(String(payload)).name,
      ]));
      assert.deepEqual(
        published.map(({ id }) => nameOf.get(String(id))),
        messages.map((each) => each.name),
      );
      assert(found.every(({ priority }) => Number(priority) === 3));
      const again = await broker.publishMany(queueOf(table, "jobs"), messages.slice(0, 20), {
        each: ({ name }) => ({ uniqueKey: name }),
      });
      assert.deepEqual(
        again.map(({ inserted }) => inserted),
        messages.slice(0, 20).map((_, index) => index % 10 !== 0),
      );
      assert.deepEqual(await broker.publishMany(queueOf(table, "jobs"), []), []);
    },
  },
  {
    name: "of many messages all are published or none",
    async run(database) {
      const table = FULL_TABLES.lease;
      await using broker = await new Broker(database.connect()).createTables(table).connect();
      const queue = queueOf(table, "jobs");
      await assert.rejects(
        broker.publishMany(queue, [{ name: "a" }, 7n as never]),
        PayloadError,
      );
      await assert.rejects(
        broker.publishMany(queue, [{ name: "a" }, { name: "b" }], {
          each: ({ name }) => name === "b" ? { columns: { no_such: 1 } } : {},
        }),
        PublishError,
      );
      assert.deepEqual(await query(broker, "SELECT id FROM jobs"), []);
    },
  },
  {
    name:
      "what is published in a transaction is there, and its subscription woken, after the commit",
    async run(database) {
      const table = FULL_TABLES.lease;
      const seen: string[] = [];
      const jobs = subscribe(table, "jobs", ({ name }) => void seen.push(name), {
        pollInterval: { hours: 1 },
      });
      const broker = new Broker(database.connect()).createTables(table).include(jobs);
      const app = new App({ name: "suite" }).withBroker(broker);
      await using test = await TestApp.startLive(app);
      const queue = queueOf(table, "jobs");
      const result = await broker.transaction(async (tx) => {
        await broker.publish(queue, { name: "a" }, { tx });
        await broker.publishMany(queue, [{ name: "b" }, { name: "c" }], { tx });
        await sleep(50);
        assert.deepEqual(seen, []);
        return "done";
      });
      assert.equal(result, "done");
      await test.advance({ milliseconds: 200 });
      assert.deepEqual(seen.toSorted(), ["a", "b", "c"]);
      await assert.rejects(
        broker.transaction(async (tx) => {
          await broker.publish(queue, { name: "d" }, { tx });
          throw new Error("Not after all");
        }),
        /Not after all/,
      );
      await test.advance({ milliseconds: 100 });
      assert.equal(seen.length, 3);
      assert.deepEqual(await rows(test), []);
    },
  },
  {
    name: "what is no transaction is refused, and so is one that has ended",
    async run(database) {
      const table = FULL_TABLES.lease;
      await using broker = await new Broker(database.connect()).createTables(table).connect();
      const queue = queueOf(table, "jobs");
      for (const tx of [{}, "tx", 1]) {
        await assert.rejects(broker.publish(queue, { name: "a" }, { tx }), TypeError);
      }
      let kept: unknown;
      await broker.transaction((tx) => Promise.resolve(void (kept = tx)));
      await assert.rejects(broker.publish(queue, { name: "a" }, { tx: kept }));
      assert.deepEqual(await query(broker, "SELECT id FROM jobs"), []);
    },
  },
  {
    name: "messages of one partition key are handled in order, one at a time, others beside them",
    async run(database) {
      const table = FULL_TABLES.lease;
      const log: string[] = [];
      const jobs = subscribe(table, "jobs", async ({ name }, { key }) => {
        log.push(`${key}${name}`);
        await sleep(key === "a" ? 1_000 : 100);
        log.push(`-${key}${name}`);
      }, { workers: 4 });
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      const queue = queueOf(table, "jobs");
      for (const key of ["a", "a", "b", "a", "b"]) {
        await test.publish(queue, { name: `${log.length}` }, { key });
      }
      await test.advance({ seconds: 10 });
      for (const key of ["a", "b"]) {
        const own = log.filter((entry) => entry.includes(key));
        assert(
          own.every((entry, n) =>
            n % 2 === 0 ? !entry.startsWith("-") : entry === `-${own[n - 1]}`
          ),
        );
      }
      test.subscriber(jobs).assertCalled(5);
      assert.equal(log.findIndex((entry) => entry.startsWith("-")), 2, "two keys at once");
    },
  },
  {
    name: "a payload is stored exactly, or refused by name before anything is written",
    async run(database) {
      const table = FULL_TABLES.lease;
      const seen: string[] = [];
      const jobs = subscribe(table, "jobs", ({ name }) => void seen.push(name));
      await using test = await TestApp.startLive(rolesService(database.connect(), table, jobs));
      const queue = queueOf(table, "jobs");
      const names = ["a\0b", "\uD800", "\u2028 😀\r\n\\", "x".repeat(20_000_000)];
      let refused = 0;
      for (const name of names) {
        try {
          await test.publish(queue, { name });
        } catch (error) {
          refused++;
          assert(error instanceof PublishError || error instanceof PayloadError);
          assert.match(error.message, /^Cannot publish to queue "jobs"/);
        }
      }
      while (seen.length < names.length - refused) await test.advance({ milliseconds: 50 });
      assert(seen.every((name) => names.includes(name)));
      assert(refused <= 1, "a server may refuse what is larger than its packets");
      const circular: Record<string, unknown> = {};
      circular.self = circular;
      const lossy = [{ a: NaN }, { a: new Date(NaN) }, { a: new Map([[1, 2]]) }, [undefined]];
      for (const bad of [circular, { name: 1n }, undefined, () => {}, ...lossy]) {
        await assert.rejects(test.publish(queue, bad as never), (error: unknown) => {
          assert(error instanceof PayloadError);
          assert.match(error.message, /"jobs"."payload" cannot hold the message: .*nothing was/s);
          return true;
        });
      }
      assert.deepEqual(await rows(test), []);
    },
  },
  {
    name: "without a payload the row itself is the message",
    async run(database) {
      const table = inbox("payouts", {
        id: "id",
        attempt: "attempt",
        lockedUntil: "locked_until",
        payload: row<{ account: string; cents: number; note: string | null }>(),
      });
      const seen: Record<string, unknown>[] = [];
      const pay = table.queue().subscribe((payout) => void seen.push({ ...payout }));
      const broker = new Broker(database.connect()).createTables(table).include(pay);
      await using test = await TestApp.start(new App({ name: "suite" }).withBroker(broker));
      await test.query("ALTER TABLE payouts ADD COLUMN account VARCHAR(20)");
      await test.query("ALTER TABLE payouts ADD COLUMN cents BIGINT");
      await test.query("ALTER TABLE payouts ADD COLUMN note VARCHAR(20)");
      await test.stop();
      const columns = ["account", "cents", "note"];
      if (database.address === undefined) return;
      await using again = await TestApp.start(new App({ name: "suite" }).withBroker(broker));
      await again.publish(table.queue(), { account: "é", cents: 2 ** 40, note: null });
      const [payout] = seen;
      assert.deepEqual(columns.map((name) => payout?.[name]), ["é", 2 ** 40, null]);
      assert.deepEqual([payout?.id, payout?.attempt], [1, 2]);
      assert.notEqual(payout?.locked_until, null);
      await assert.rejects(
        again.publish(table.queue(), { account: "a", attempt: 3 } as never),
        /plays the role attempt/,
      );
    },
  },
  {
    name: "4 processes publish 10,000 messages of 1,000 unique keys, and 1,000 are there",
    needs: "processes",
    async run(database) {
      const table = FULL_TABLES.lease;
      await using broker = await new Broker(database.connect()).createTables(table).connect();
      const publishers = Array.from({ length: 4 }, (_, n) => publisher(database.address!, n));
      const counts = await Promise.all(publishers);
      assert.equal(counts.reduce((sum, count) => sum + count), 1_000);
      const found = await query(broker, "SELECT unique_key FROM jobs");
      assert.equal(found.length, 1_000);
      assert.equal(new Set(found.map(({ unique_key: key }) => key)).size, 1_000);
    },
  },
];

/** Publishes in a process of its own; how many messages it has inserted. */
async function publisher(address: string, number: number): Promise<number> {
  const { stdout, success } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", PUBLISHER, address, String(number)],
    stderr: "inherit",
  }).output();
  assert(success);
  return Number(new TextDecoder().decode(stdout).trim().split("\n").at(-1));
}

const PUBLISHER = new URL("./unique_publisher.ts", import.meta.url).href;

/** What a handler publishes. */
const deliveryTests: readonly FormTest[] = [
  {
    name: "a handler publishes through its delivery",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const ids: MessageId[] = [];
      const jobs = subscribe(table, "jobs", async ({ name }, delivery) => {
        const { id } = await delivery.publish(table.queue("replies"), { name: `re: ${name}` });
        ids.push(id);
      });
      const replies = subscribe(table, "replies", () => ack());
      await using test = await TestApp.start(
        rolesService(database.connect(), table, jobs, replies),
      );
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      await test.advance({ seconds: 1 });
      test.subscriber(replies).assertCalledOnce().assertReceived({ name: "re: a" });
      assert.deepEqual(test.deliveries.map(({ id }) => id).slice(1), ids);
    },
  },
];

async function rows(test: TestApp) {
  return await test.query("SELECT * FROM jobs ORDER BY id");
}

async function query({ driver }: Broker, text: string) {
  const session = await driver.session();
  try {
    return (await session.query(text)).rows;
  } finally {
    await session.release();
  }
}

/** What publishing promises. */
export const publishingTests: readonly ConformanceTest[] = [
  ...tests,
  ...inEachForm(deliveryTests),
];
