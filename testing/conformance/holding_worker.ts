import type { Driver } from "./holdfast.ts";
import { leaseService } from "./lease_service.ts";
import { sqlite } from "../../src/sqlite/mod.ts";

const [address = "", leaseSeconds = ""] = Deno.args;

const { app, queue } = leaseService(connect(address), () => {
  console.log("held");
  return new Promise<void>((resolve) => setTimeout(resolve, 3_600_000));
}, { lease: Number(leaseSeconds) });
await app.start();
await app.publish(queue, { name: "held by another process" });

function connect(address: string): Driver {
  const colon = address.indexOf(":");
  const [database, place] = [address.slice(0, colon), address.slice(colon + 1)];
  if (database === "sqlite") return sqlite(place);
  throw new TypeError(`Cannot connect to ${address}: give sqlite:<path>`);
}
