import { ack, App, Broker, inbox, json } from "@holdfast/inbox";
import type { Driver } from "@holdfast/inbox/driver";
import { TestApp } from "@holdfast/inbox/testing";
import { onEachDatabase } from "./on_each_database.ts";

const jobs = inbox("jobs", {
  id: "id",
  group: "queue",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: json<{ photo: string }>("payload"),
});
const resizing = jobs.queue("resizing");

/** Takes a minute, and more memory than there is. */
const resize = resizing.subscribe({ maxAttempts: 5, deadLetter: "failed" }, async () => {
  await new Promise((resolve) => setTimeout(resolve, 60_000));
  return ack();
});
const reportFailure = jobs.queue("failed").subscribe(() => ack());

function service(driver: Driver): App {
  const broker = new Broker(driver).createTables(jobs).include(resize, reportFailure);
  return new App({ name: "photos" }).withBroker(broker);
}

onEachDatabase("a job that kills its process five times is put aside", async (database) => {
  const photos = service(database.connect());
  await using app = await TestApp.start(photos);
  await app.publish(resizing, { photo: "huge.tiff" });
  app.subscriber(resize).assertCalledOnce();
  await app.crash();

  for (let crashes = 1; crashes < 5; crashes++) {
    await using restarted = await TestApp.join(app, photos);
    await restarted.waitFor(() => restarted.subscriber(resize).assertCalledOnce());
    await restarted.crash();
  }

  await using last = await TestApp.join(app, photos);
  await last.drain();
  last.subscriber(resize).assertNotCalled(); // nor was the process killed a sixth time
  last.subscriber(reportFailure).assertCalledOnce().assertReceived({ photo: "huge.tiff" });
});
