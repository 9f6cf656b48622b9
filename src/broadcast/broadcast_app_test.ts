import assert from "node:assert/strict";
import { TestApp } from "../../testing/mod.ts";
import { App } from "../app.ts";
import { Broker } from "../broker.ts";
import { DeclarationError } from "../errors.ts";
import { inbox } from "../inbox.ts";
import { ack, retry } from "../outcome.ts";
import { sqlite, sqliteTx } from "../sqlite/mod.ts";
import { text } from "../text.ts";
import { Broadcast } from "./broadcast.ts";
import { ChannelForTest } from "./channel_for_test.ts";
import { inProcess } from "./in_process.ts";
import { postgresNotify } from "./postgres_notify.ts";

const jobs = inbox("jobs", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: text("payload"),
});
const queue = jobs.queue("jobs");

Deno.test("a message is sent after the commit, and never after a rollback", async () => {
  await using broker = await new Broker(sqlite(":memory:")).createTables(jobs).connect();
  await using broadcast = new Broadcast({ channels: [inProcess()] });
  const got: unknown[] = [];
  broadcast.subscribe("jobs", ({ message }) => void got.push(message));
  await broadcast.open();
  await broker.transaction(async (tx) => {
    assert.equal(broadcast.sendAfterCommit(tx, "jobs", "committed"), true);
    await broker.publish(queue, "a", { tx });
    assert.equal(await broadcast.drain(1_000), true);
    assert.deepEqual(got, []);
  });
  await assert.rejects(broker.transaction((tx) => {
    broadcast.sendAfterCommit(tx, "jobs", "rolled back");
    return Promise.reject(new Error("no"));
  }));
  await broadcast.drain(1_000);
  assert.deepEqual(got, ["committed"]);
  assert.equal(broadcast.sendAfterCommit({}, "jobs", "of somebody else"), false);
  assert.equal(broadcast.stats().sent, 1);
});

Deno.test("a transactional handler sends what it has done once that is committed", async () => {
  const broadcast = new Broadcast({ channels: [inProcess()] });
  const got: unknown[] = [];
  broadcast.subscribe("jobs", ({ message }) => void got.push(message));
  const work = queue.subscribe(
    { transactional: true },
    async (message, delivery) => {
      const tx = await sqliteTx(delivery);
      assert(broadcast.sendAfterCommit(tx, "jobs", `${message} ${delivery.attempt}`));
      return delivery.attempt === 1 ? retry() : ack();
    },
  );
  const broker = new Broker(sqlite(":memory:")).createTables(jobs).include(work);
  await using app = await TestApp.start(
    new App({ name: "app" }).withBroker(broker).withComponent(broadcast),
  );
  await app.publish(queue, "a");
  await app.drain();
  assert.deepEqual(got, ["a 2"]);
});

Deno.test("handlers that finish while the app stops still send, and all is sent before it has stopped", async () => {
  const channel = new ChannelForTest();
  const broadcast = new Broadcast({ channels: [channel] });
  const [started, finish] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const work = queue.subscribe(async (message) => {
    started.resolve();
    await finish.promise;
    broadcast.send("jobs", message);
    return ack();
  });
  const broker = new Broker(sqlite(":memory:")).createTables(jobs).include(work);
  const app = new App({ name: "app" }).withBroker(broker).withComponent(broadcast);
  const running = await app.start();
  await app.publish(queue, "late");
  await started.promise;
  channel.whenSending = () => new Promise((resolve) => setTimeout(resolve, 50));
  const stopping = running.stop();
  setTimeout(finish.resolve, 20);
  const { failures } = await stopping;
  assert.deepEqual(failures, []);
  assert.deepEqual(channel.messages, ["late"]);
  assert.equal(channel.listeners.size, 0);
});

Deno.test("a channel that hangs keeps an app that stops no longer than its closeTimeout", async () => {
  const channel = new ChannelForTest();
  const broadcast = new Broadcast({ channels: [channel] });
  const app = new App({ name: "app", closeTimeout: 200 }).withComponent(broadcast);
  const running = await app.start();
  channel.whenSending = () => new Promise(() => {});
  broadcast.send("topic", 1);
  broadcast.send("topic", 2);
  const { failures, duration } = await running.stop();
  assert.deepEqual(failures, []);
  assert(duration < 1_000);
  assert.deepEqual([broadcast.stats().failed, broadcast.stats().dropped], [1, 1]);
});

Deno.test("a channel that can never be opened ends the start of the app", async () => {
  const broker = new Broker(sqlite(":memory:"));
  const broadcast = new Broadcast({ channels: [postgresNotify(broker)] });
  const app = new App({ name: "app" }).withBroker(broker).withComponent(broadcast);
  await assert.rejects(app.start(), (error) => {
    assert(error instanceof DeclarationError);
    assert.match(error.message, /component "broadcast".*a broker of SQLite.*Postgres/);
    return true;
  });
});

Deno.test("in a TestApp retries take virtual time, and handlers send without waiting", async () => {
  const channel = new ChannelForTest();
  const broadcast = new Broadcast({ channels: [channel], retryPause: { hours: 1 } });
  const got: unknown[] = [];
  broadcast.subscribe(
    "jobs",
    ({ message, sentAt }) => void got.push([message, Date.now() - sentAt]),
  );
  const work = queue.subscribe((message) => {
    broadcast.send("jobs", message);
    return ack();
  });
  const broker = new Broker(sqlite(":memory:")).createTables(jobs).include(work);
  const app = await TestApp.start(
    new App({ name: "app" }).withBroker(broker).withComponent(broadcast),
  );
  let attempts = 0;
  channel.whenSending = () => {
    if (++attempts < 3) throw new Error("not yet");
  };
  await app.publish(queue, "a");
  assert.equal(attempts, 1);
  await app.advance({ hours: 1 });
  assert.equal(attempts, 2);
  await app.advance({ hours: 1 });
  assert.deepEqual(got, [["a", 7_200_000]]);
  assert.equal(broadcast.latencyPercentile(99), 7_200_000);
  await app.publish(queue, "b");
  assert.deepEqual(got[1], ["b", 0]);
  await app.stop();
  assert.equal(channel.listeners.size, 0);
});

Deno.test("an app that crashes sends nothing any more, and its channels are closed", async () => {
  const channel = new ChannelForTest();
  const broadcast = new Broadcast({ channels: [channel], retryPause: { hours: 1 } });
  await using app = await TestApp.start(new App({ name: "app" }).withComponent(broadcast));
  channel.whenSending = () => {
    throw new Error("not yet");
  };
  broadcast.send("topic", 1);
  broadcast.send("topic", 2);
  await app.settled();
  channel.whenSending = () => {};
  await app.crash();
  assert.deepEqual(channel.messages, []);
  assert.equal(channel.listeners.size, 0);
});
