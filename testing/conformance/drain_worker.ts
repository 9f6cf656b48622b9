import { configure } from "@logtape/logtape";
import { ack, type Delivery, type Driver } from "./holdfast.ts";
import { connectTo } from "./connect_to.ts";
import { advisoryLockService, leaseService, rowLockService } from "./lease_service.ts";

/** Drains the suite's table until SIGTERM, then prints what it has acked and logged. */
const [address = "", form = ""] = Deno.args;
const acked: string[] = [];
const problems: string[] = [];
await configure({
  sinks: { problems: ({ message }) => void problems.push(message.map(String).join("")) },
  loggers: [
    { category: "holdfast", sinks: ["problems"], lowestLevel: "warning" },
    { category: ["logtape", "meta"], lowestLevel: "error" },
  ],
});
const { app } = serviceOf(connectTo(address, { connections: 12 }));
await app
  .afterStartup(() => console.log("running"))
  .afterShutdown(() => console.log(JSON.stringify({ acked, problems })))
  .run();

function serviceOf(driver: Driver) {
  if (form === "lease") return leaseService(driver, handle, { workers: 10 });
  return form === "row lock"
    ? rowLockService(driver, handle, 10)
    : advisoryLockService(driver, handle, 10);
}

async function handle(_job: unknown, delivery: Delivery): Promise<void> {
  await delivery.settle(ack());
  acked.push(String(delivery.id));
}
