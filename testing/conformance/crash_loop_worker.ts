import { connectTo } from "./connect_to.ts";
import { FULL_TABLES } from "./full_service.ts";
import { ack, App, Broker, type Form } from "./holdfast.ts";

/** Prints each message that it begins; one of them kills it. */
const [address = "", form = ""] = Deno.args;
const table = FULL_TABLES[form as Form];
const options = { maxAttempts: 3, deadLetter: "dead", pollInterval: 100 } as const;
const lease = form === "lease" ? { lease: { seconds: 1 } } : {};
const jobs = table.queue("jobs").subscribe({ ...options, ...lease }, ({ name }, { attempt }) => {
  console.log(`${name} ${attempt}`);
  if (name === "poison") Deno.kill(Deno.pid, "SIGKILL");
  return ack();
});
const broker = new Broker(connectTo(address)).createTables(table).include(jobs);
await new App({ name: "suite" }).withBroker(broker).run();
