import { ack, App, Broker, inbox, json } from "@holdfast/inbox";
import type { Driver } from "@holdfast/inbox/driver";
import { TestApp } from "@holdfast/inbox/testing";
import assert from "node:assert/strict";
import { onEachDatabase } from "./on_each_database.ts";

const jobs = inbox("jobs", {
  id: "id",
  group: "queue",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: json<{ order: number }>("payload"),
});
const orders = jobs.queue("orders");
const receipts = jobs.queue("receipts");

/** What it publishes is there if, and only if, the order is done. */
const book = orders.subscribe({ transactional: true }, async ({ order }, delivery) => {
  await delivery.publish(receipts, { order });
  if (delivery.attempt === 1) throw new Error("The card was declined");
  return ack();
});
const send = receipts.subscribe(() => ack());

function service(driver: Driver): App {
  const broker = new Broker(driver).createTables(jobs).include(book, send);
  return new App({ name: "shop" }).withBroker(broker);
}

onEachDatabase("an order that fails sends no receipt", async (database) => {
  await using app = await TestApp.start(service(database.connect()));
  await app.publish(orders, { order: 7 });
  assert.deepEqual(app.published(receipts).rolledBack(), [{ order: 7 }]);
  app.published(receipts).assertNotPublished();
  app.subscriber(send).assertNotCalled();

  await app.drain(); // the second attempt succeeds
  app.published(receipts).assertPublishedOnce().assertMessage({ order: 7 });
  app.subscriber(send).assertCalledOnce().assertSettled(ack());
});
