import { Broker } from "@holdfast/inbox";
import { sqlite } from "@holdfast/inbox/sqlite";
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { mails, ORDERS, publishWithNodeSqlite } from "./transactions.ts";

Deno.test("an order is there with its mail, or neither is", async () => {
  const file = await Deno.makeTempFile({ suffix: ".db" });
  try {
    using shop = new DatabaseSync(file);
    shop.exec(ORDERS);
    await using broker = await new Broker(sqlite(file)).createTables(mails.inbox).connect();

    const id = await publishWithNodeSqlite(shop, broker, { id: 7, item: "pear" });
    const again = publishWithNodeSqlite(shop, broker, { id: 7, item: "apple" });
    await assert.rejects(again, /UNIQUE constraint failed: orders.id/);

    const written = "SELECT mails.id, item FROM mails LEFT JOIN orders ON orders.mail = mails.id";
    const rows = shop.prepare(written).all().map((row) => ({ ...row }));
    assert.deepEqual(rows, [{ id: Number(id), item: "pear" }]);
  } finally {
    await Deno.remove(file);
  }
});
