import { connectTo } from "./connect_to.ts";
import { DeliveryLedger } from "./delivery_ledger.ts";
import { BLOCKED, GROUPS, HEAD } from "./fifo_crash_groups.ts";
import { ack, type Delivery, type Outcome, retryAfter } from "./holdfast.ts";
import type { Job } from "./lease_service.ts";
import { FIFO_TABLES, rolesService, subscribe } from "./roles_service.ts";
import { sleep } from "./sleep.ts";
import { Watcher } from "./watcher.ts";

/** Handles all groups, fails now and then, and writes down what it does. */
const [address = "", ledgerPath = "", form = ""] = Deno.args;
const table = FIFO_TABLES[form as keyof typeof FIFO_TABLES];
const ledger = new DeliveryLedger(ledgerPath);
const watcher = await Watcher.open(connectTo(address, { connections: 2 }));
const options = {
  pollInterval: 200,
  backoff: { first: 20, cap: 100 },
  ...(form === "lease" ? { lease: { seconds: 2 } } : {}),
};
const groups = [...GROUPS, BLOCKED].map((group) => subscribe(table, group, handle, options));
await rolesService(connectTo(address, { connections: groups.length + 3 }), table, ...groups)
  .afterStartup(() => console.log("running"))
  .afterShutdown(() => watcher[Symbol.asyncDispose]())
  .run();

async function handle({ name }: Job, delivery: Delivery): Promise<Outcome | void> {
  ledger.write("start", delivery);
  if (await seesEarlier(delivery)) ledger.write("early", delivery);
  await sleep(20 + Math.random() * 120);
  if (name === HEAD) {
    ledger.write("failed", delivery);
    return retryAfter({ hours: 1 });
  }
  if (Math.random() < 0.05) {
    ledger.write("failed", delivery);
    throw new Error("No luck");
  }
  ledger.write("acking", delivery);
  try {
    await delivery.settle(ack());
  } catch (error) {
    ledger.write("lost", delivery);
    throw error;
  }
  ledger.write("ack", delivery);
}

/** Whether the database still has a row that comes before this one in its group. */
async function seesEarlier({ queue, id }: Delivery): Promise<boolean> {
  const earlier = `SELECT count(*) AS count FROM jobs WHERE queue = '${queue}' AND id < ${id}`;
  return await watcher.count(earlier) > 0;
}
