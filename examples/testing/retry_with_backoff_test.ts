import { ack, App, Broker, inbox, json } from "@holdfast/inbox";
import type { Driver } from "@holdfast/inbox/driver";
import { TestApp } from "@holdfast/inbox/testing";
import assert from "node:assert/strict";
import { onEachDatabase } from "./on_each_database.ts";

const payments = inbox("payments", {
  id: "id",
  attempt: "attempt",
  retryAfter: "due",
  lockedUntil: "locked_until",
  payload: json<{ cents: number }>("payload"),
});
const queue = payments.queue("payments");

const FRIDAY = Date.UTC(2030, 0, 4, 18);
const MONDAY = Date.UTC(2030, 0, 7, 18);

const pay = queue.subscribe(
  { backoff: { first: { minutes: 1 }, cap: { hours: 12 } } },
  () => {
    if (Date.now() < MONDAY) throw new Error("The bank is closed");
    return ack();
  },
);

function service(driver: Driver): App {
  const broker = new Broker(driver).createTables(payments).include(pay);
  return new App({ name: "payments" }).withBroker(broker);
}

onEachDatabase("a payment is tried for three days, until the bank opens", async (database) => {
  await using app = await TestApp.start(service(database.connect()), { now: FRIDAY });
  await app.publish(queue, { cents: 995 });
  assert.match(app.subscriber(pay).errors()[0]!.message, /The bank is closed/);

  const { outcomes, errors } = await app.drain(); // until no message is left, however long it takes

  app.subscriber(pay).assertReceived({ cents: 995 }).assertSettled(ack());
  assert.equal(outcomes.ack, 1);
  assert(errors > 5 && errors < 50, `${errors} tries in three days`);
  assert(app.time.now >= MONDAY);
});
