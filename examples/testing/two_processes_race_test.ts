import { ack, App, Broker, inbox, json } from "@holdfast/inbox";
import type { Driver } from "@holdfast/inbox/driver";
import { TestApp } from "@holdfast/inbox/testing";
import assert from "node:assert/strict";
import { onEachDatabase } from "./on_each_database.ts";

const thumbnails = inbox("thumbnails", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: json<{ photo: number }>("payload"),
});
const queue = thumbnails.queue("thumbnails");

const draw = queue.subscribe({ workers: 3 }, async ({ photo }) => {
  await new Promise((resolve) => setTimeout(resolve, 100 + photo % 7));
  return ack();
});

function service(driver: Driver): App {
  const broker = new Broker(driver).createTables(thumbnails).include(draw);
  return new App({ name: "thumbnails" }).withBroker(broker);
}

onEachDatabase("of a hundred messages two processes handle each once", async (database) => {
  await using one = await TestApp.start(service(database.connect()));
  await using two = await TestApp.join(one, service(database.connect()));
  const photos = Array.from({ length: 100 }, (_, photo) => photo);
  for (const photo of photos) await (photo % 2 === 0 ? one : two).publish(queue, { photo });

  await one.drain();
  await two.settled();

  const byOne = one.subscriber(draw).received();
  const byTwo = two.subscriber(draw).received();
  const handled = [...byOne, ...byTwo].map(({ photo }) => photo);
  assert.deepEqual(handled.toSorted((a, b) => a - b), photos);
  assert(byOne.length > 0 && byTwo.length > 0, `${byOne.length} and ${byTwo.length}`);
  assert([...one.deliveries, ...two.deliveries].every(({ settled }) => settled));
});
