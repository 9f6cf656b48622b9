import type { Driver } from "./holdfast.ts";
import { leaseService, rowLockService } from "./lease_service.ts";
import { postgres } from "../../src/postgres/mod.ts";
import { sqlite } from "../../src/sqlite/mod.ts";

const [address = "", leaseSeconds = ""] = Deno.args;

const lease = Number(leaseSeconds);
const { app, queue } = lease > 0
  ? leaseService(connect(address), hold, { lease })
  : rowLockService(connect(address), hold);
await app.start();
await app.publish(queue, { name: "held by another process" });

function connect(address: string): Driver {
  const colon = address.indexOf(":");
  const [database, place] = [address.slice(0, colon), address.slice(colon + 1)];
  if (database === "sqlite") return sqlite(place);
  if (database === "postgres") return postgres(place);
  throw new TypeError(`Cannot connect to ${address}: give sqlite:<path> or postgres:<url>`);
}

function hold(): Promise<void> {
  console.log("held");
  return new Promise((resolve) => setTimeout(resolve, 3_600_000));
}
