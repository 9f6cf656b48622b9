import { ack, App, Broker, inbox, json, PayloadError } from "@holdfast/inbox";
import type { Driver } from "@holdfast/inbox/driver";
import { TestApp } from "@holdfast/inbox/testing";
import assert from "node:assert/strict";
import { onEachDatabase } from "./on_each_database.ts";

const jobs = inbox("jobs", {
  id: "id",
  group: "queue",
  attempt: "attempt",
  lockedUntil: "locked_until",
  lastError: "last_error",
  payload: json<{ to: string }>("payload"),
});
const mails = jobs.queue("mails");
const send = mails.subscribe(
  { maxAttempts: 3, deadLetter: "unreadable" },
  () => ack(),
);

function service(driver: Driver): App {
  const broker = new Broker(driver).createTables(jobs).include(send);
  return new App({ name: "mails" }).withBroker(broker);
}

onEachDatabase("a payload that is no JSON is put aside, and holds up nothing", async (database) => {
  await using app = await TestApp.start(service(database.connect()));
  const poison = `{"to": "ada@exam`; // as another program wrote it
  await app.query(`INSERT INTO jobs (queue, payload) VALUES ('mails', '${poison}')`);
  await app.publish(mails, { to: "grace@example.com" });

  await app.drain();

  app.subscriber(send).assertCalledOnce().assertReceived({ to: "grace@example.com" });
  const errors = app.subscriber(send).errors();
  assert.equal(errors.length, 3); // one for each attempt
  assert(errors.every((error) => error instanceof PayloadError));
  const [row] = await app.query("SELECT queue, payload, last_error FROM jobs");
  assert.equal(row?.queue, "unreadable");
  assert.equal(row.payload, poison); // unchanged, for whoever mends it
  assert.equal(row.last_error, errors.at(-1)?.message);
});
