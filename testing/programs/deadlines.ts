import { ack, App, Broker, inbox, text } from "../../mod.ts";
import { sqlite } from "../../src/sqlite/mod.ts";

/** A service whose one handler and one request take so long, for tests of its deadlines. */
const { file, handler, request, heeds } = JSON.parse(Deno.args[0]!) as {
  file: string;
  handler: number;
  request: number;
  heeds: boolean;
};

const jobs = inbox("jobs", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: text("payload"),
});
const work = jobs.queue().subscribe({ lease: { seconds: 30 } }, async (name, { signal }) => {
  if (name === "waits") return ack();
  console.log("handling");
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, handler);
    if (!heeds) return;
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
  console.log(signal.aborted ? "aborted" : "handled");
});
const broker = new Broker(sqlite(file)).createTables(jobs).include(work);
await new App({
  name: "service",
  drain: 1_000,
  abortTimeout: 500,
  closeTimeout: 500,
  grace: 2_000,
})
  .withBroker(broker)
  .serve({
    port: 0,
    hostname: "127.0.0.1",
    onListen: ({ port }) => console.log(`listening ${port}`),
  }, async () => {
    console.log("requested");
    await new Promise((resolve) => setTimeout(resolve, request));
    return new Response("done");
  })
  .afterStartup(async (app) => {
    await app.publish(jobs.queue(), "works");
  })
  .run();
