import assert from "node:assert/strict";
import { ack, DriverError, TestApp } from "../../testing/conformance/holdfast.ts";
import { advisoryLockService, leaseService } from "../../testing/conformance/lease_service.ts";
import {
  FIFO_TABLES,
  queueOf,
  rolesService,
  subscribe,
} from "../../testing/conformance/roles_service.ts";
import { startPgBouncer } from "../../tools/servers/pgbouncer.ts";
import { startPostgres } from "../../tools/servers/postgres.ts";
import { testServer } from "../../tools/servers/test_server.ts";
import { postgres } from "./mod.ts";

testServer("an app in the advisory lock form works behind PgBouncer by session", async () => {
  await using server = await startPostgres();
  await using pooler = await startPgBouncer({ postgres: server.url, poolMode: "session" });
  const { app, queue, subscription } = advisoryLockService(
    postgres(pooler.url, { pgBouncer: true }),
    () => ack(),
    3,
  );
  await using test = await TestApp.start(app);
  for (let n = 0; n < 20; n++) await test.publish(queue, { name: `${n}` });
  test.subscriber(subscription).assertCalled(20);
  assert(test.deliveries.every(({ settled }) => settled));
  const locks = await test.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'");
  assert.deepEqual(locks, []);
});

testServer(
  "behind PgBouncer by transaction leases and FIFO work, advisory locks do not start",
  async () => {
    await using server = await startPostgres();
    await using pooler = await startPgBouncer({ postgres: server.url, poolMode: "transaction" });
    const connect = () => postgres(pooler.url, { pgBouncer: true });
    await assert.rejects(
      advisoryLockService(connect(), () => ack()).app.start(),
      (error: unknown) => error instanceof DriverError && error.kind === "unusable",
    );
    {
      const { app, queue, subscription } = leaseService(connect(), () => ack(), { workers: 3 });
      await using test = await TestApp.start(app);
      for (let n = 0; n < 20; n++) await test.publish(queue, { name: `${n}` });
      test.subscriber(subscription).assertCalled(20);
      await test.query("DROP TABLE jobs");
    }
    const names: string[] = [];
    const fifo = subscribe(FIFO_TABLES.lease, "a", ({ name }) => void names.push(name));
    await using test = await TestApp.start(rolesService(connect(), FIFO_TABLES.lease, fifo));
    for (let n = 0; n < 5; n++) {
      await test.publish(queueOf(FIFO_TABLES.lease, "a"), {
        name: `${n}`,
      });
    }
    assert.deepEqual(names, ["0", "1", "2", "3", "4"]);
    const locks = await test.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'");
    assert.deepEqual(locks, []);
  },
);
