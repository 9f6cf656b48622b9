import { DeliveryLedger } from "./delivery_ledger.ts";
import { ack } from "./holdfast.ts";
import { leaseService } from "./lease_service.ts";
import { sleep } from "./sleep.ts";
import { sqlite } from "../../src/sqlite/mod.ts";

const [database = "", ledgerPath = ""] = Deno.args;
const ledger = new DeliveryLedger(ledgerPath);

const { app } = leaseService(sqlite(database), async (_job, delivery) => {
  ledger.write("start", delivery);
  await sleep(20);
  try {
    await delivery.settle(ack());
  } catch (error) {
    ledger.write("lost", delivery);
    throw error;
  }
  ledger.write("ack", delivery);
}, { workers: 2, lease: 2 });
await app.afterStartup(() => console.log("running")).run();
