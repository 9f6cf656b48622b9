import { ack, App, Broker, inbox, json, LeaseLostError } from "@holdfast/inbox";
import type { Driver } from "@holdfast/inbox/driver";
import { TestApp } from "@holdfast/inbox/testing";
import assert from "node:assert/strict";
import { onEachDatabase } from "./on_each_database.ts";

const reports = inbox("reports", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: json<{ pages: number }>("payload"),
});
const queue = reports.queue("reports");

/** A second a page; it does not look at `delivery.signal`. */
const render = queue.subscribe({ lease: { minutes: 1 } }, async ({ pages }) => {
  await new Promise((resolve) => setTimeout(resolve, pages * 1_000));
  return ack();
});

function service(driver: Driver): App {
  const broker = new Broker(driver).createTables(reports).include(render);
  return new App({ name: "reports" }).withBroker(broker);
}

onEachDatabase("a process that stood still has lost its report to another", async (database) => {
  await using stalled = await TestApp.start(service(database.connect()));
  await using other = await TestApp.join(stalled, service(database.connect()));
  await stalled.publish(queue, { pages: 150 });
  stalled.pauseRenewals(); // as in a process that the host has suspended

  await stalled.advance({ seconds: 62 }); // the lease of a minute ends, the other process polls
  other.subscriber(render).assertCalledOnce();
  assert.equal(other.deliveries[0]?.attempt, 2);

  await stalled.advance({ minutes: 3 }); // the first handler returns ack, then the second
  const [lost] = stalled.deliveries;
  assert(lost?.error instanceof LeaseLostError);
  assert.equal(lost.settled, false); // its ack has changed nothing
  other.subscriber(render).assertCalledOnce().assertSettled(ack());
});
