import { ack, App, Broker, inbox, json, ShutdownError } from "@holdfast/inbox";
import type { Driver } from "@holdfast/inbox/driver";
import { TestApp } from "@holdfast/inbox/testing";
import assert from "node:assert/strict";
import { onEachDatabase } from "./on_each_database.ts";

const videos = inbox("videos", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: json<{ seconds: number }>("payload"),
});
const queue = videos.queue("videos");

/** Ends early when it is told to. */
const encode = queue.subscribe(async ({ seconds }, { signal }) => {
  await new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1_000);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
  return ack();
});

function service(driver: Driver): App {
  const broker = new Broker(driver).createTables(videos).include(encode);
  return new App({ name: "videos", drain: { seconds: 30 } }).withBroker(broker);
}

onEachDatabase("a stop waits for a job that ends within the drain", async (database) => {
  await using app = await TestApp.start(service(database.connect()));
  await app.publish(queue, { seconds: 20 });
  const { aborted, queues } = await app.stop();
  assert.equal(aborted, false);
  assert.deepEqual(queues, [{ queue: "videos", finished: 1, released: 0, aborted: 0 }]);
  app.subscriber(encode).assertSettled(ack());
});

onEachDatabase(
  "a stop aborts a job that takes too long; another process does it",
  async (database) => {
    await using other = await TestApp.start(service(database.connect()));
    const busy = await TestApp.join(other, service(database.connect()));
    await busy.publish(queue, { seconds: 300 });
    const { aborted } = await busy.stop();
    assert.equal(aborted, true);
    assert(busy.deliveries[0]?.error instanceof ShutdownError);

    await other.drain(); // the row was free at once
    other.subscriber(encode).assertCalledOnce().assertSettled(ack());
    assert.equal(other.deliveries[0]?.attempt, 2);
  },
);
