import { connectTo } from "./connect_to.ts";
import type { Hold } from "./holding_process.ts";
import {
  advisoryLockService,
  type LeaseService,
  leaseService,
  rowLockService,
} from "./lease_service.ts";

const [address = "", hold = ""] = Deno.args;

const { app, queue } = serviceOf(JSON.parse(hold) as Hold);
await app.start();
await app.publish(queue, { name: "held by another process" });

function serviceOf({ form, lease }: Hold): LeaseService {
  const driver = connectTo(address);
  switch (form) {
    case "lease":
      return leaseService(driver, holdOn, { lease });
    case "row lock":
      return rowLockService(driver, holdOn);
    case "advisory lock":
      return advisoryLockService(driver, holdOn);
  }
}

function holdOn(): Promise<void> {
  console.log("held");
  return new Promise((resolve) => setTimeout(resolve, 3_600_000));
}
