import { Broker } from "./holdfast.ts";
import { connectTo } from "./connect_to.ts";
import { FULL_TABLES } from "./full_service.ts";

/** Publishes 2,500 messages of 1,000 keys, by ones and by many; prints how many it has inserted. */
const [address = "", number = "0"] = Deno.args;
const queue = FULL_TABLES.lease.queue("jobs");
const broker = await new Broker(connectTo(address)).connect();
const names = Array.from({ length: 2_500 }, (_, n) => `${(n * 7 + Number(number) * 13) % 1_000}`);
let inserted = 0;
for (let start = 0; start < names.length; start += 100) {
  const part = names.slice(start, start + 100);
  if (start % 200 === 0) {
    const published = await broker.publishMany(queue, part.map((name) => ({ name })), {
      each: ({ name }) => ({ uniqueKey: name }),
    });
    inserted += published.filter((each) => each.inserted).length;
    continue;
  }
  for (const name of part) {
    if ((await broker.publish(queue, { name }, { uniqueKey: name })).inserted) inserted++;
  }
}
await broker.close();
console.log(inserted);
