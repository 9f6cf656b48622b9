import { ack, App, Broker, inbox, json, retryAfter } from "@holdfast/inbox";
import type { Driver } from "@holdfast/inbox/driver";
import { TestApp } from "@holdfast/inbox/testing";
import assert from "node:assert/strict";
import { onEachDatabase } from "./on_each_database.ts";

const transfers = inbox("transfers", {
  id: "id",
  group: "account",
  fifo: true,
  attempt: "attempt",
  retryAfter: "due",
  lockedUntil: "locked_until",
  payload: json<{ cents: number }>("payload"),
});
const ada = transfers.queue("ada");
const grace = transfers.queue("grace");

/** The first attempt of a withdrawal is an hour too early. */
const bookForAda = ada.subscribe(({ cents }, { attempt }) => {
  return cents < 0 && attempt === 1 ? retryAfter({ hours: 1 }) : ack();
});
const bookForGrace = grace.subscribe(() => ack());

function service(driver: Driver): App {
  const broker = new Broker(driver).createTables(transfers).include(bookForAda, bookForGrace);
  return new App({ name: "bank" }).withBroker(broker);
}

onEachDatabase("a transfer that is retried holds up its account alone", async (database) => {
  await using app = await TestApp.start(service(database.connect()));
  for (const cents of [-100, 250, 300]) await app.publish(ada, { cents });
  for (const cents of [1, 2]) await app.publish(grace, { cents });

  await app.advance({ minutes: 59 });
  assert.deepEqual(centsOf(app.subscriber(bookForAda).received()), [-100]);
  assert.deepEqual(centsOf(app.subscriber(bookForGrace).received()), [1, 2]);

  await app.drain();
  assert.deepEqual(centsOf(app.subscriber(bookForAda).received()), [-100, -100, 250, 300]);
  app.subscriber(bookForAda).assertSettled(ack());
});

function centsOf(transfers: readonly { cents: number }[]): number[] {
  return transfers.map(({ cents }) => cents);
}
