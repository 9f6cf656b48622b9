import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { ack, App, Broker, inbox, retry, text } from "../../mod.ts";
import { sqlite } from "./mod.ts";

const jobs = inbox("jobs", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: text("payload"),
});
const queue = jobs.queue();

Deno.test("handlers may open transactions of their own on the handle that the broker uses", async () => {
  using handle = new DatabaseSync(":memory:");
  handle.exec("CREATE TABLE notes (note)");
  const errors: unknown[] = [];
  let turns = 0;
  const subscription = queue.subscribe({ workers: 8 }, async (note) => {
    for (let turn = 0; turn < turns++ % 20; turn++) await Promise.resolve();
    try {
      handle.exec("BEGIN");
      handle.prepare("INSERT INTO notes VALUES (?)").run(note);
      handle.exec("COMMIT");
    } catch (error) {
      errors.push(error);
    }
  });
  const broker = new Broker(sqlite({ handle })).createTables(jobs).include(subscription);
  const app = new App({ name: "app" }).withBroker(broker);
  await using _running = await app.start();
  for (let n = 0; n < 100; n++) await app.publish(queue, `${n}`);
  await until(() => handle.prepare("SELECT 1 FROM jobs").all().length === 0);
  assert.deepEqual(errors, []);
  assert.equal(handle.prepare("SELECT count(*) AS n FROM notes").get()!.n, 100);
});

Deno.test("another connection of the process that waits without a turn is never in the way", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const file = `${folder}/jobs.db`;
    const subscription = queue.subscribe({ workers: 4 }, () => ack());
    const broker = new Broker(sqlite(file)).createTables(jobs).include(subscription);
    const app = new App({ name: "app" }).withBroker(broker);
    await using _running = await app.start();
    using own = new DatabaseSync(file, { timeout: 1 });
    own.exec("CREATE TABLE notes (note)");
    for (let n = 0; n < 300; n++) {
      const publishing = app.publish(queue, `${n}`);
      for (let turn = 0; turn < n % 12; turn++) await Promise.resolve();
      own.exec("INSERT INTO notes VALUES (1)"); // "database is locked" if a transaction is open
      await publishing;
    }
    await until(() => own.prepare("SELECT 1 FROM jobs").all().length === 0);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("timers keep ticking while messages are published, claimed and retried at once", async () => {
  let calls = 0;
  const subscription = queue.subscribe(() => ++calls < 20_000 ? retry() : ack());
  const broker = new Broker(sqlite(":memory:")).createTables(jobs).include(subscription);
  const app = new App({ name: "app" }).withBroker(broker);
  await using _running = await app.start();
  let ticks = 0;
  const ticker = setInterval(() => ticks++, 1);
  try {
    await app.publish(queue, "again and again");
    await until(() => ticks >= 20);
    assert(calls < 20_000, "no timer fired before the messages were done");
  } finally {
    clearInterval(ticker);
    calls = 20_000;
  }
});

async function until(condition: () => boolean): Promise<void> {
  const end = Date.now() + 20_000;
  while (!condition()) {
    assert(Date.now() < end, "it has not come true within 20 s");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
