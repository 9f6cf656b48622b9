import assert from "node:assert/strict";
import { ack, Broker } from "../../mod.ts";
import type { Driver } from "../../src/driver/driver.ts";
import { onEachDatabase, SQLITE, type TestedDatabase } from "../databases/databases_for_test.ts";
import { TestDatabases } from "../databases/test_databases.ts";
import type { TestApp } from "../test_app.ts";
import { failureOf } from "./failure_of.ts";
import { jobs, orders, receipts } from "./orders.ts";

/** A test, on a database of its own, for which one of the broker's handlers is to be wrong. */
function onEach(name: string, test: (broker: Broker, on: TestedDatabase) => Promise<void>): void {
  onEachDatabase(name, async (on) => {
    await using databases = new TestDatabases<Driver>({ url: on.url, connect: on.connect });
    await using database = await databases.create();
    await test(new Broker(database.connect()).createTables(jobs), on);
  });
}

async function expectNoReceipt(app: TestApp): Promise<void> {
  await app.publish(orders, { order: 7 });
  app.published(receipts).assertNotPublished();
}

async function expectReceipt(app: TestApp): Promise<void> {
  await app.publish(orders, { order: 7 });
  await app.advance({ seconds: 1 });
  app.published(receipts).assertPublishedOnce();
}

const BEFORE = `What happened:\n+0.000 s  orders: published 1\n+0.000 s  orders: claimed 1\n` +
  `+0.000 s  orders: started 1 (attempt 1)\n`;
const FOUND_ONE = `AssertionError [ERR_ASSERTION]: Expected of queue "receipts": 0 messages ` +
  `published, but found: 1\n`;
const FOUND_NONE = `AssertionError [ERR_ASSERTION]: Expected of queue "receipts": 1 message ` +
  `published, but found: 0\n`;
const BESIDE = `+0.000 s  receipts: published 2 by message 1 of queue "orders" (outside the ` +
  `transaction of its delivery, unlike delivery.publish)\n`;
const DECLINED = `+0.000 s  orders: settled 1 (attempt 1) as retry, Error: The card was declined`;

onEach("a publish beside the transaction of its delivery stays, and is marked", async (broker) => {
  const subscription = orders.subscribe({ transactional: true }, async (order) => {
    await broker.publish(receipts, order);
    throw new Error("The card was declined");
  });
  const { error, leak } = await failureOf({ subscription, broker, test: expectNoReceipt });
  assert.equal(error, FOUND_ONE + BEFORE + BESIDE + DECLINED);
  assert.equal(leak, "");
});

onEach("likewise one in a transaction of its own", async (broker) => {
  const subscription = orders.subscribe({ transactional: true }, async (order) => {
    await broker.transaction((tx) => broker.publish(receipts, order, { tx }));
    throw new Error("The card was declined");
  });
  const { error, leak } = await failureOf({ subscription, broker, test: expectNoReceipt });
  assert.equal(error, FOUND_ONE + BEFORE + BESIDE + DECLINED);
  assert.equal(leak, "");
});

Deno.test("SQLite: a publish beside an open transaction is refused, also if that is caught", async () => {
  const broker = new Broker(SQLITE.connect(SQLITE.url)).createTables(jobs);
  const subscription = orders.subscribe({ transactional: true }, async (order, delivery) => {
    await delivery.publish(receipts, order);
    await broker.publish(receipts, { order: 8 }).catch(() => {});
    return ack();
  });
  const test = async (app: TestApp) => {
    await app.publish(orders, { order: 7 });
    app.published(receipts).assertPublished(2);
  };
  const { error } = await failureOf({ subscription, broker, test });
  assert.equal(
    error.replace(/.*renewed.*\n/, ""),
    `AssertionError [ERR_ASSERTION]: Expected of queue "receipts": 2 messages published, but ` +
      `found: 1\n${BEFORE}+0.000 s  receipts: published 2 by message 1 of queue "orders"\n` +
      `+0.000 s  orders: refused the handler of 1: DeclarationError: Cannot use this database ` +
      `from inside its own open transaction, for which the call would wait for ever: publish ` +
      `with { tx } or delivery.publish, or do it after the transaction\n` +
      `+0.000 s  orders: settled 1 (attempt 1) as ack`,
  );
});

Deno.test("a handler that does not wait for its publish is refused, and the trace says so", async () => {
  const subscription = orders.subscribe((order, delivery) => {
    setTimeout(() => void delivery.publish(receipts, order), 10);
    return ack();
  });
  const { error, leak } = await failureOf({ subscription, test: expectReceipt });
  assert.equal(
    error,
    `${FOUND_NONE}${BEFORE}+0.000 s  orders: settled 1 (attempt 1) as ack\n` +
      `+0.010 s  orders: refused the handler of 1: ClosedError: Cannot publish to queue ` +
      `"receipts": the delivery of message 1 of queue "orders" has ended; wait in the handler ` +
      `for what it does`,
  );
  assert.equal(leak, "");
});

Deno.test("what a handler publishes by its broker after its end is marked", async () => {
  const broker = new Broker(SQLITE.connect(SQLITE.url)).createTables(jobs);
  const subscription = orders.subscribe((order) => {
    setTimeout(() => void broker.publish(receipts, order), 10);
    return ack();
  });
  const test = async (app: TestApp) => {
    await app.publish(orders, { order: 7 });
    await app.advance({ seconds: 1 });
    app.published(receipts).assertNotPublished();
  };
  const { error } = await failureOf({ subscription, broker, test });
  assert.equal(
    error,
    `${FOUND_ONE}${BEFORE}+0.000 s  orders: settled 1 (attempt 1) as ack\n` +
      `+0.010 s  receipts: published 2 by message 1 of queue "orders" after its handler had ended`,
  );
});

onEach("a transaction that a handler never ends is a leak with its name", async (broker, on) => {
  const never = new Promise<void>(() => {});
  const subscription = orders.subscribe(async (order) => {
    const opened = Promise.withResolvers<void>();
    void broker.transaction(async (tx) => {
      await broker.publish(receipts, order, { tx });
      opened.resolve();
      await never;
    });
    await opened.promise;
    return ack();
  });
  const { error, leak, trace } = await failureOf({ subscription, broker });
  assert.match(
    leak,
    RegExp(
      `^- of ${on.title === "SQLite" ? "SQLite" : "\\w+"}, an open transaction of message 1 of ` +
        `queue "orders" that was never ended, last statement: INSERT INTO \\S*jobs`,
      "m",
    ),
  );
  assert(
    trace.includes(`receipts: published 2 by message 1 of queue "orders" (not committed yet)`),
  );
  // There one transaction that writes keeps all others waiting, also the handler's own settle.
  if (on.title === "SQLite") assert.match(error, /^FakeTimeError: .* 1 waits for locks there/);
  else assert.equal(error, "");
});
