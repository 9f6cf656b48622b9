import { ack, App, Broker, inbox, json } from "@holdfast/inbox";
import type { Driver } from "@holdfast/inbox/driver";
import { TestApp } from "@holdfast/inbox/testing";
import { onEachDatabase } from "./on_each_database.ts";

const jobs = inbox("jobs", {
  id: "id",
  group: "queue",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: json<{ order: number; items: readonly string[] }>("payload"),
});
const orders = jobs.queue("orders");
const stock = jobs.queue("stock");
const invoices = jobs.queue("invoices");
const mails = jobs.queue("mails");

/** All three or none are published: the order's end is in the same transaction. */
const place = orders.subscribe({ transactional: true }, async (order, delivery) => {
  for (const queue of [stock, invoices, mails]) await delivery.publish(queue, order);
  return ack();
});
const reserve = stock.subscribe(() => ack());
const invoice = invoices.subscribe(() => ack());
const thank = mails.subscribe(() => ack());

function service(driver: Driver): App {
  const broker = new Broker(driver)
    .createTables(jobs)
    .include(place, reserve, invoice, thank);
  return new App({ name: "shop" }).withBroker(broker);
}

onEachDatabase("an order is told to stock, invoices and mails", async (database) => {
  await using app = await TestApp.start(service(database.connect()));
  const order = { order: 7, items: ["pear", "plum"] };

  await app.assertPublished(invoices, { order: 7 }, () => app.publish(orders, order));
  await app.drain();

  for (const queue of [stock, invoices, mails]) {
    app.published(queue).assertPublishedOnce().assertMessage(order);
  }
  for (const subscription of [reserve, invoice, thank]) {
    app.subscriber(subscription).assertCalledOnce().assertReceived(order).assertSettled(ack());
  }
});
