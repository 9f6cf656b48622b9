import assert from "node:assert/strict";
import {
  ack,
  App,
  Broker,
  bytes,
  ClosedError,
  codec,
  type Driver,
  inbox,
  json,
  type Payload,
  PayloadError,
  TestApp,
  text,
} from "./holdfast.ts";
import { leaseService } from "./lease_service.ts";
import { rowsOf } from "./rows.ts";
import type { ConformanceTest } from "./test_database.ts";

/** What publishing promises, and that values come through exactly. */
export const publishTests: readonly ConformanceTest[] = [
  {
    name: "a message is delivered once, acked, and its row is gone",
    async run(database) {
      const { app, queue, subscription } = leaseService(database.connect(), () => ack());
      await using test = await TestApp.start(app);
      const published = await test.publish(queue, { name: "a" });
      test.subscriber(subscription)
        .assertCalledOnce().assertReceived({ name: "a" }).assertSettled(ack());
      assert.equal(published.inserted, true);
      assert.equal(test.deliveries[0]?.id, published.id);
      assert.deepEqual(await rowsOf(test), []);
    },
  },
  {
    name: "a message that has no stored form is refused before anything is written",
    async run(database) {
      const { app, queue } = leaseService(database.connect(), () => ack());
      await using test = await TestApp.start(app);
      const cycle: Record<string, unknown> = { name: "a" };
      cycle.self = cycle;
      for (const message of [undefined, cycle, { name: 1n }, () => {}]) {
        await assert.rejects(test.publish(queue, message as never), PayloadError);
      }
      assert.deepEqual(test.deliveries, []);
      assert.deepEqual(await rowsOf(test), []);
    },
  },
  {
    name: "publishing to what is not connected is a ClosedError",
    async run(database) {
      const { app, queue } = leaseService(database.connect(), () => ack());
      await assert.rejects(app.publish(queue, { name: "a" }), ClosedError);
      await assert.rejects(app.brokers[0]!.publish(queue, { name: "a" }), ClosedError);
    },
  },
  {
    name: "JSON comes through exactly",
    run: (database) =>
      comesThrough(database.connect(), json<unknown>("payload"), [
        null,
        true,
        0,
        -1.5e300,
        "",
        "Grüße, 世界 👋 \u2028 ' \" \\ \u0001 ?",
        "\ud800",
        [],
        { deep: [{ er: [1, "2", null] }] },
        "x".repeat(1_000_000),
      ]),
  },
  {
    name: "text comes through exactly",
    run: (database) =>
      comesThrough(database.connect(), text("payload"), [
        "",
        "42",
        "1e5",
        "Grüße, 👋\r\n",
        "'; --",
      ]),
  },
  {
    name: "bytes come through exactly",
    run: (database) =>
      comesThrough(database.connect(), bytes("payload"), [
        new Uint8Array(),
        new Uint8Array([0, 1, 0, 255]),
        crypto.getRandomValues(new Uint8Array(65_536)),
      ]),
  },
  {
    name: "a codec's messages come through exactly",
    run: (database) =>
      comesThrough(
        database.connect(),
        codec<bigint>("payload", {
          encode: (n) => n.toString(36),
          decode: (s) => BigInt(parseInt(s, 36)),
        }),
        [0n, 35n, 123456n],
      ),
  },
];

async function comesThrough<T>(
  driver: Driver,
  payload: Payload<T>,
  messages: readonly T[],
): Promise<void> {
  const jobs = inbox("jobs", {
    id: "id",
    attempt: "attempt",
    lockedUntil: "locked_until",
    payload,
  });
  const subscription = jobs.queue().subscribe(() => ack());
  const broker = new Broker(driver).createTables(jobs).include(subscription);
  await using test = await TestApp.start(new App({ name: "suite" }).withBroker(broker));
  for (const message of messages) await test.publish(jobs.queue(), message as never);
  assert.deepEqual(test.subscriber(subscription).received(), messages);
}
