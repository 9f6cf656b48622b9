import assert from "node:assert/strict";
import { Broker } from "@holdfast/inbox";
import { connectTo } from "../testing/conformance/connect_to.ts";
import { slots } from "./shop.ts";

const RESTARTS = 20;
const CLIENTS = 4;

/** One process of the shop. */
class Shop {
  readonly #child: Deno.ChildProcess;
  readonly #lines: string[] = [];
  readonly #listening = Promise.withResolvers<string>();
  readonly #read: Promise<void>;

  constructor(address: string, ledger: string) {
    this.#child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", PROGRAM, address, ledger],
      stdin: "null",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#read = this.#readLines();
  }

  /** Resolves to where it listens, once it is ready. */
  async ready(): Promise<string> {
    const url = await this.#listening.promise;
    for (;;) {
      const response = await fetch(`${url}/readyz`);
      await response.body?.cancel();
      if (response.ok) return url;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  /** Stops it by SIGTERM; its exit code, and what it has logged from a warning on. */
  async stop(): Promise<{ readonly code: number; readonly problems: readonly string[] }> {
    this.#child.kill("SIGTERM");
    const { code } = await this.#child.status;
    await this.#read;
    return { code, problems: this.#lines.filter((line) => !line.startsWith("listening")) };
  }

  async #readLines(): Promise<void> {
    let rest = "";
    for await (const text of this.#child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      this.#lines.push(...lines);
      const port = this.#lines.find((line) => line.startsWith("listening "))?.slice(10);
      if (port !== undefined) this.#listening.resolve(`http://127.0.0.1:${port}`);
    }
    this.#listening.reject(new Error("The shop has ended"));
  }
}

/** A rolling deploy under load: the next process is ready before the one before it is stopped. */
async function deploy(address: string, createOrders: string): Promise<void> {
  const folder = await Deno.makeTempDir();
  await prepare(address, createOrders);
  const ledger = `${folder}/ledger`;
  let shop = new Shop(address, ledger);
  let url = await shop.ready();
  let isOpen = true;
  const placed: number[] = [];
  const failures: string[] = [];
  const clients = Array.from({ length: CLIENTS }, async () => {
    while (isOpen) {
      try {
        const response = await fetch(url, { method: "POST", body: '{"item":"pear"}' });
        const { order } = await response.json();
        if (response.status === 201) placed.push(order);
        else failures.push(String(response.status));
      } catch (error) {
        failures.push(String(error));
      }
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
  });
  const problems: string[] = [];
  const codes: number[] = [];
  for (let n = 0; n < RESTARTS; n++) {
    const next = new Shop(address, ledger);
    url = await next.ready();
    const ended = await shop.stop();
    codes.push(ended.code);
    problems.push(...ended.problems);
    shop = next;
  }
  isOpen = false;
  await Promise.all(clients);
  await untilShipped(address);
  const ended = await shop.stop();
  const shipped = (await Deno.readTextFile(ledger)).trim().split("\n");
  await Deno.remove(folder, { recursive: true });
  console.log(`${placed.length} orders in ${RESTARTS} restarts`);
  assert.deepEqual(failures, []);
  assert.deepEqual([...problems, ...ended.problems], []);
  assert.deepEqual([...codes, ended.code], Array(RESTARTS + 1).fill(0));
  assert.deepEqual(
    shipped.toSorted(),
    placed.map((order) => `${order} 1`).toSorted(),
    "each order is shipped once, at the first attempt",
  );
}

async function prepare(address: string, createOrders: string): Promise<void> {
  await using broker = await new Broker(connectTo(address)).connect();
  const session = await broker.driver.session();
  const name = broker.driver.name.toLowerCase() as "postgres" | "mysql" | "sqlite";
  for (const text of [createOrders, slots.ddl(name).replace(/;\s*$/, "")]) {
    await session.query(text);
  }
  await session.release();
}

async function untilShipped(address: string): Promise<void> {
  await using broker = await new Broker(connectTo(address)).connect();
  for (let tries = 0; tries < 600; tries++) {
    const session = await broker.driver.session();
    const { rows } = await session.query("SELECT id FROM shipments LIMIT 1");
    await session.release();
    if (rows.length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail("orders are left");
}

Deno.test("SQLite: 20 rolling restarts under load fail, lose and repeat nothing", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await deploy(
      `sqlite:${folder}/shop.db`,
      "CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, item TEXT NOT NULL)",
    );
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

const SERVERS = {
  Postgres: {
    variable: "HOLDFAST_TEST_POSTGRES",
    kind: "postgres",
    orders: "CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item text)",
  },
  MariaDB: {
    variable: "HOLDFAST_TEST_MARIADB",
    kind: "mysql",
    orders: "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, item VARCHAR(20))",
  },
} as const;

for (const [title, { variable, kind, orders }] of Object.entries(SERVERS)) {
  const server = Deno.env.get(variable);
  Deno.test({
    name: `${title}: 20 rolling restarts under load fail, lose and repeat nothing`,
    ignore: server === undefined && Deno.env.get("CI") !== "true",
    async fn() {
      const name = `holdfast_${crypto.randomUUID().replaceAll("-", "")}`;
      const administer = async (text: string) => {
        await using broker = await new Broker(connectTo(`${kind}:${server}`)).connect();
        const session = await broker.driver.session();
        await session.query(text);
        await session.release();
      };
      await administer(`CREATE DATABASE ${name}`);
      const address = new URL(server!);
      address.pathname = `/${name}`;
      try {
        await deploy(`${kind}:${address}`, orders);
      } finally {
        await administer(`DROP DATABASE ${name}`);
      }
    },
  });
}

const PROGRAM = new URL("./shop_worker.ts", import.meta.url).href;
