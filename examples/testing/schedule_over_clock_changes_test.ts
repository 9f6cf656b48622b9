import { ack, App, Broker, inbox, json } from "@holdfast/inbox";
import type { Driver } from "@holdfast/inbox/driver";
import { TestApp } from "@holdfast/inbox/testing";
import assert from "node:assert/strict";
import { onEachDatabase } from "./on_each_database.ts";

/** Rows that are done stay, so that their unique keys tell which slots were published. */
const jobs = inbox("jobs", {
  id: "id",
  group: "queue",
  attempt: "attempt",
  lockedUntil: "locked_until",
  processedAt: "done_at",
  uniqueKey: "unique_key",
  payload: json<{ slot: string }>("payload"),
});
const breakfast = jobs.queue("breakfast");
const backup = jobs.queue("backup");
const cook = breakfast.subscribe(() => ack());
const save = backup.subscribe(() => ack());

function service(driver: Driver): App {
  const broker = new Broker(driver).createTables(jobs).include(cook, save);
  const slotOf = (slot: Date) => ({ slot: slot.toISOString() });
  return new App({ name: "hotel" })
    .withBroker(broker)
    .schedule("0 7 * * *", breakfast, slotOf, { timeZone: "Europe/Berlin" })
    .schedule("30 2 * * *", backup, slotOf, { timeZone: "Europe/Berlin" });
}

onEachDatabase("in spring 02:30 is skipped by the clock, not by the schedule", async (database) => {
  const start = new Date("2030-03-30T12:00:00Z"); // the night's hour from 2 to 3 does not exist
  await using app = await TestApp.start(service(database.connect()), { now: start });
  await app.advance({ days: 2 });
  assert.deepEqual(app.published(breakfast).messages(), [
    { slot: "2030-03-31T05:00:00.000Z" }, // 07:00 in summer
    { slot: "2030-04-01T05:00:00.000Z" },
  ]);
  assert.deepEqual(app.published(backup).messages(), [
    { slot: "2030-03-31T01:00:00.000Z" }, // 03:00, when it would have been 02:30
    { slot: "2030-04-01T00:30:00.000Z" },
  ]);
  app.subscriber(save).assertCalled(2).assertSettled(ack());
});

onEachDatabase("in autumn, when 02:30 comes twice, the backup runs once", async (database) => {
  const start = new Date("2030-10-26T12:00:00Z"); // the night's hour from 2 to 3 comes twice
  await using app = await TestApp.start(service(database.connect()), { now: start });
  await app.advance({ days: 2 });
  assert.deepEqual(app.published(breakfast).messages(), [
    { slot: "2030-10-27T06:00:00.000Z" }, // 07:00 in winter
    { slot: "2030-10-28T06:00:00.000Z" },
  ]);
  assert.deepEqual(app.published(backup).messages(), [
    { slot: "2030-10-27T00:30:00.000Z" }, // the first of the two
    { slot: "2030-10-28T01:30:00.000Z" },
  ]);
  app.subscriber(save).assertCalled(2).assertSettled(ack());
});
