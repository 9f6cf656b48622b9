import assert from "node:assert/strict";
import postgresJs from "postgres";
import { inProcess } from "../broadcast/mod.ts";
import { App } from "../app.ts";
import { Broker, type BrokerOptions } from "../broker.ts";
import { DeclarationError } from "../errors.ts";
import { inbox } from "../inbox.ts";
import { json } from "../json.ts";
import { sqlite } from "../sqlite/mod.ts";
import { postgres } from "./mod.ts";
import { query, serverTest, tableName, until } from "./server_for_test.ts";

function jobsIn(table: string) {
  return inbox(table, {
    id: "id",
    payload: json<{ n: number }>("payload"),
    lockedUntil: "locked_until",
  });
}

/** A process that only publishes, and an app that would poll once in an hour. */
async function withTwoBrokers(
  server: string,
  options: () => BrokerOptions,
  test: (
    publisher: Broker,
    jobs: ReturnType<typeof jobsIn>,
    got: readonly number[],
    driver: ReturnType<typeof postgres>,
  ) => Promise<void>,
): Promise<void> {
  const table = tableName();
  const jobs = jobsIn(table);
  const got: number[] = [];
  const driver = postgres(server, { applicationName: table });
  const broker = new Broker(driver, { ...options(), pollInterval: { hours: 1 } })
    .createTables(jobs)
    .include(jobs.queue().subscribe(({ n }) => void got.push(n)));
  const app = new App({ name: table }).withBroker(broker);
  await app.start();
  const publisher = new Broker(postgres(server), options());
  try {
    await publisher.connect();
    await test(publisher, jobs, got, driver);
  } finally {
    await publisher.close();
    await query(driver, `DROP TABLE ${table}`);
    await app.stop();
  }
}

serverTest(
  "a publish wakes other processes after its commit, by LISTEN and NOTIFY",
  (server) =>
    withTwoBrokers(server, () => ({ listenNotify: true }), async (publisher, jobs, got) => {
      await publisher.publish(jobs.queue(), { n: 1 });
      await until(() => got.includes(1));
      await publisher.publishMany(jobs.queue(), [{ n: 2 }, { n: 3 }]);
      await until(() => got.includes(3));
      await publisher.transaction(async (tx) => {
        await publisher.publish(jobs.queue(), { n: 4 }, { tx });
      });
      await until(() => got.includes(4));
      assert.deepEqual(got.toSorted(), [1, 2, 3, 4]);
    }),
);

serverTest(
  "a transaction of the caller's own client wakes when it commits, not before",
  (server) =>
    withTwoBrokers(server, () => ({ listenNotify: true }), async (publisher, jobs, got) => {
      const sql = postgresJs(server);
      const heard: string[] = [];
      const { unlisten } = await sql.listen("holdfast_wake", (payload) => {
        if (payload.includes(jobs.table)) heard.push(payload);
      });
      const rolledBack = sql.begin(async (tx) => {
        await publisher.publish(jobs.queue(), { n: 0 }, { tx });
        throw new Error("rolled back");
      });
      await assert.rejects(rolledBack, /rolled back/);
      await sql.begin(async (tx) => {
        for (const n of [1, 2, 3]) await publisher.publish(jobs.queue(), { n }, { tx });
        assert.deepEqual([heard, got], [[], []]);
      });
      await until(() => got.length === 3);
      // One for all three, and none of what was rolled back.
      assert.equal(heard.length, 1);
      await unlisten();
      await sql.end();
    }),
);

serverTest(
  "many publishes are few notifications",
  (server) =>
    withTwoBrokers(server, () => ({ listenNotify: true }), async (publisher, jobs, got) => {
      const sql = postgresJs(server);
      let heard = 0;
      const { unlisten } = await sql.listen("holdfast_wake", (payload) => {
        if (payload.includes(jobs.table)) heard++;
      });
      const start = performance.now();
      await Promise.all(
        Array.from({ length: 500 }, (_, n) => publisher.publish(jobs.queue(), { n })),
      );
      const most = (performance.now() - start) / 10 + 2;
      await until(() => got.length === 500);
      assert(heard >= 1 && heard <= most, `${heard} notifications, not 1 to ${most}`);
      await unlisten();
      await sql.end();
    }),
);

serverTest(
  "a connection that listens and was cut is made again, and wakes everything",
  (server) =>
    withTwoBrokers(server, () => ({ listenNotify: true }), async (_, jobs, got, driver) => {
      await query(driver, `INSERT INTO ${jobs.table} (payload) VALUES ('{"n":1}')`);
      const { rows } = await query(
        driver,
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 ` +
          `AND query = 'LISTEN "holdfast_wake"'`,
        [jobs.table],
      );
      assert.equal(rows.length, 1);
      await until(() => got.includes(1));
    }),
);

serverTest(
  "a channel wakes brokers that share it, and one that fails keeps no publish",
  (server) => {
    const channel = inProcess();
    return withTwoBrokers(server, () => ({ wake: channel }), async (publisher, jobs, got) => {
      await publisher.publish(jobs.queue(), { n: 1 });
      await until(() => got.includes(1));
      channel.send = () => Promise.reject(new Error("No channel"));
      await publisher.publish(jobs.queue(), { n: 2 });
      assert(!got.includes(2));
    });
  },
);

Deno.test("a broker refuses wakes that it cannot have", () => {
  const over = (options: BrokerOptions) => () => new Broker(sqlite(":memory:"), options);
  assert.throws(over({ listenNotify: true }), DeclarationError);
  assert.throws(over({ wake: "redis" as never }), DeclarationError);
  const both = { listenNotify: true, wake: inProcess() };
  assert.throws(() => new Broker(postgres("postgres://127.0.0.1:1/none"), both), DeclarationError);
});
