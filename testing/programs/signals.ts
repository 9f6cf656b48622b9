import { App, Broker, inbox, text } from "../../mod.ts";
import { sqlite } from "../../src/sqlite/mod.ts";

/** A program whose one handler works for so long, for tests that send it signals. */
const { handler, startup = 0, shutdown = 0 } = JSON.parse(Deno.args[0]!) as {
  handler: number;
  startup?: number;
  shutdown?: number;
};

const jobs = inbox("jobs", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: text("payload"),
});
const work = jobs.queue().subscribe(async (_, { signal }) => {
  console.log("started");
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, handler);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
  console.log(signal.aborted ? "aborted" : "finished");
});
const broker = new Broker(sqlite(":memory:")).createTables(jobs).include(work);
await new App({ name: "program" })
  .withBroker(broker)
  .afterStartup(async (app) => {
    await app.publish(jobs.queue(), "job");
    await new Promise((resolve) => setTimeout(resolve, startup));
  })
  .withComponent({
    name: "slow",
    close: () => new Promise((resolve) => setTimeout(resolve, shutdown)),
  })
  .afterShutdown(() => console.log("closed"))
  .run();
