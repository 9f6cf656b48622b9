import assert from "node:assert/strict";
import { ack, App, Broker, inbox, LeaseLostError, retry, text } from "../../mod.ts";
import type { Handler, SubscribeOptions } from "../../mod.ts";
import { TestApp } from "../../testing/mod.ts";
import { sqlite } from "./mod.ts";

const jobs = inbox("jobs", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: text("payload"),
});
const queue = jobs.queue();

Deno.test("a row that cannot be deleted keeps no other from being settled", async () => {
  await using test = await start(() => sleep(1_000), { workers: 5 });
  await test.query(`CREATE TRIGGER stuck BEFORE DELETE ON jobs WHEN old.id = 3
    BEGIN SELECT raise(ABORT, 'it must stay'); END`);
  for (let n = 1; n <= 5; n++) await test.publish(queue, `${n}`);
  await test.advance({ seconds: 1 });
  assert.deepEqual(test.deliveries.map(({ settled }) => settled), [true, true, false, true, true]);
  assert.match(String(test.deliveries[2]?.error), /it must stay/);
  await test.query("DROP TRIGGER stuck");
  await test.advance({ seconds: 10 }); // it comes back after a delay, not after its lease
  assert.deepEqual(await test.query("SELECT id FROM jobs"), []);
});

Deno.test("a row that cannot be renewed costs no other its lease", async () => {
  await using test = await start((_, { attempt }) => sleep(attempt === 1 ? 100_000 : 0), {
    workers: 3,
    lease: { seconds: 20 },
  });
  for (let n = 1; n <= 3; n++) await test.publish(queue, `${n}`);
  await test.query(`CREATE TRIGGER stuck BEFORE UPDATE ON jobs WHEN old.id = 2
    BEGIN SELECT raise(ABORT, 'it must stay'); END`);
  await test.advance({ seconds: 99 });
  const lost = test.trace.entries.filter(({ event }) => event.type === "lost");
  assert.deepEqual(lost.map(({ event }) => event.type === "lost" && event.id), [2n]);
  await test.query("DROP TRIGGER stuck");
  await test.advance({ seconds: 1 });
  const [first, , third] = test.deliveries;
  assert(first?.settled && third?.settled);
});

Deno.test("a handler that heeds its signal and returns nothing has not acked", async () => {
  const test = await start(async (_, { signal }) => {
    while (!signal.aborted) await sleep(1_000);
  });
  await test.publish(queue, "unfinished");
  await test.stop();
  assert.deepEqual(test.deliveries[0]?.outcome, retry());
});

Deno.test("a settle that fails while nobody waits for it is recorded, and harms nobody", async () => {
  await using test = await start(async (_, delivery) => {
    await sleep(1_000);
    delivery.settle(ack());
  });
  await test.publish(queue, "taken");
  await test.query("UPDATE jobs SET attempt = attempt + 1, locked_until = locked_until + 60000");
  await test.advance({ seconds: 1 });
  assert(test.deliveries[0]?.error instanceof LeaseLostError);
});

Deno.test("a second settle does not hide what became of the first", async () => {
  await using test = await start(async (_, delivery) => {
    const first = delivery.settle(ack());
    await delivery.settle(retry()).catch(() => {});
    await first;
  });
  await test.publish(queue, "once");
  assert.deepEqual(test.deliveries[0]?.outcome, ack());
  assert.equal(test.deliveries[0]?.settled, true);
});

Deno.test("an id that is NULL or bytes does not stop the queue", async () => {
  const made = inbox("made", {
    id: { column: "id", generate: () => crypto.randomUUID() },
    attempt: "attempt",
    lockedUntil: "locked_until",
    payload: text("payload"),
  });
  const subscription = made.queue().subscribe(() => ack());
  const broker = new Broker(sqlite(":memory:")).include(subscription);
  const app = new App({ name: "app" }).withBroker(broker);
  const create = `CREATE TABLE made (id TEXT PRIMARY KEY, attempt INTEGER, locked_until INTEGER,
    payload TEXT)`;
  broker.createTables(made);
  await using test = await TestApp.start(app);
  await test.query("DROP TABLE made");
  await test.query(create);
  await test.query(
    "INSERT INTO made VALUES (NULL, 1, NULL, 'a'), (x'00ff', 1, 0, 'b'), (NULL, 1, 0, 'c')",
  );
  await test.publish(made.queue(), "d");
  assert.deepEqual(test.subscriber(subscription).received(), ["d"]);
});

Deno.test("a due time that is no whole number, or none, does not stop a queue of advisory locks", async () => {
  const made = inbox("made", {
    id: "id",
    attempt: "attempt",
    retryAfter: "due",
    payload: text("payload"),
  }, { advisoryLock: "made-{id}" });
  const subscription = made.queue().subscribe({ pollInterval: 1_000 }, () => ack());
  const broker = new Broker(sqlite(":memory:")).createTables(made).include(subscription);
  await using test = await TestApp.start(new App({ name: "app" }).withBroker(broker));
  await test.query("INSERT INTO made (due, payload) VALUES (1.5, 'a'), (-1e999, 'b'), (2, 'c')");
  await test.advance({ seconds: 1 });
  assert.deepEqual(test.subscriber(subscription).received(), ["b", "a", "c"]);
});

function start(
  handler: Handler<string, number>,
  options: SubscribeOptions<"lease", "jobs"> = {},
): Promise<TestApp> {
  const broker = new Broker(sqlite(":memory:")).createTables(jobs)
    .include(queue.subscribe(options, handler));
  return TestApp.start(new App({ name: "app" }).withBroker(broker));
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
