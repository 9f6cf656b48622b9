import { configure } from "@logtape/logtape";
import { shop } from "./shop.ts";
import type { Driver } from "../src/driver/driver.ts";
import type { MysqlTransaction } from "../src/mysql/mod.ts";
import type { PostgresTransaction } from "../src/postgres/mod.ts";
import type { NodeSqliteHandle } from "../src/sqlite/mod.ts";
import { connectTo } from "../testing/conformance/connect_to.ts";

/** Runs the shop; says where it listens, and every line of its log from a warning on. */
const [address = "", ledger = ""] = Deno.args;
await configure({
  sinks: { problems: ({ level, message }) => console.log(`${level}: ${message.join("")}`) },
  loggers: [
    { category: "holdfast", sinks: ["problems"], lowestLevel: "warning" },
    { category: ["logtape", "meta"], lowestLevel: "error" },
  ],
});
const driver: Driver = connectTo(address);
const file = Deno.openSync(ledger, { create: true, append: true });
const INSERTS: Readonly<Record<string, (tx: never, item: string) => Promise<number>>> = {
  Postgres: async (tx: PostgresTransaction, item) => {
    const [row] = await tx`INSERT INTO orders (item) VALUES (${item}) RETURNING id`;
    return Number(row.id);
  },
  MySQL: async (tx: MysqlTransaction, item) => {
    const [{ insertId }] = await tx.execute("INSERT INTO orders (item) VALUES (?)", [item]);
    return Number(insertId);
  },
  SQLite: (tx: NodeSqliteHandle, item) => {
    const [row] = tx.prepare("INSERT INTO orders (item) VALUES (?) RETURNING id").all(item);
    return Promise.resolve(Number((row as { id: number | bigint }).id));
  },
};
await shop(driver, {
  port: 0,
  insertOrder: INSERTS[driver.name]! as (tx: unknown, item: string) => Promise<number>,
  onListen: ({ port }) => console.log(`listening ${port}`),
  async ship(order, attempt) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    file.writeSync(new TextEncoder().encode(`${order} ${attempt}\n`));
  },
}).run();
