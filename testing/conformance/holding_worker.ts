import { connectTo } from "./connect_to.ts";
import { leaseService, rowLockService } from "./lease_service.ts";

const [address = "", leaseSeconds = ""] = Deno.args;

const lease = Number(leaseSeconds);
const { app, queue } = lease > 0
  ? leaseService(connectTo(address), hold, { lease })
  : rowLockService(connectTo(address), hold);
await app.start();
await app.publish(queue, { name: "held by another process" });

function hold(): Promise<void> {
  console.log("held");
  return new Promise((resolve) => setTimeout(resolve, 3_600_000));
}
