import assert from "node:assert/strict";
import { ack, Broker, type Outcome, retry, type Subscription } from "../../mod.ts";
import { sqlite } from "../../src/sqlite/mod.ts";
import type { TestApp } from "../test_app.ts";
import { type Failure, failureOf } from "./failure_of.ts";
import { jobs, type Order, orders } from "./orders.ts";

type OrderSubscription = Subscription<Order, "lease", number, "jobs">;

const BEFORE = `+0.000 s  orders: published 1\n+0.000 s  orders: claimed 1\n` +
  `+0.000 s  orders: started 1 (attempt 1)\n`;

/** A test that expects of an order that it is settled as it should be. */
function failureOfExpected(subscription: OrderSubscription, outcome: Outcome): Promise<Failure> {
  return failureOf({
    subscription,
    test: async (app: TestApp) => {
      await app.publish(orders, { order: 7 });
      app.subscriber(subscription).assertSettled(outcome);
    },
  });
}

/** What such a test says, given what was found and what happened after the start. */
function expectation(wanted: Outcome, found: string, ...lines: readonly string[]): string {
  return `AssertionError [ERR_ASSERTION]: Expected of queue "orders": the latest delivery settled ` +
    `as { kind: '${wanted.kind}' }, but found: ${found}\nWhat happened:\n${BEFORE}` +
    lines.map((line) => `+0.000 s  orders: ${line}`).join("\n");
}

/** Likewise of a delivery that has failed with an error. */
function failed(error: string): string {
  const end = `settled 1 (attempt 1) as retry, ${error}`;
  return expectation(ack(), `{ kind: 'retry' }, ${error}`, end);
}

Deno.test("a handler that settles and then returns an outcome is told both", async () => {
  const subscription = orders.subscribe(async (_, delivery) => {
    await delivery.settle(ack());
    return retry();
  });
  const { error, leak } = await failureOfExpected(subscription, retry());
  const twice = `AlreadySettledError: The handler of queue "orders" settled message 1 as ack and ` +
    `then returned retry; return nothing after delivery.settle()`;
  assert.equal(
    error,
    expectation(retry(), `{ kind: 'ack' }, ${twice}`, `settled 1 (attempt 1) as ack, ${twice}`),
  );
  assert.equal(leak, "");
});

Deno.test("a handler that settles twice is told so, and the trace if it catches that", async () => {
  const again = `AlreadySettledError: Cannot settle message 1 of queue "orders" again: it is ` +
    `settled; settle each delivery once`;
  const subscription = orders.subscribe(async (_, delivery) => {
    await delivery.settle(ack());
    await delivery.settle(retry()).catch(() => {});
  });
  const { error } = await failureOfExpected(subscription, retry());
  assert.equal(
    error,
    expectation(
      retry(),
      "{ kind: 'ack' }",
      `refused the handler of 1: ${again}`,
      "settled 1 (attempt 1) as ack",
    ),
  );
});

Deno.test("a handler that returns what is no outcome is told what it has returned", async () => {
  const returns: readonly (readonly [unknown, string])[] = [
    [{ done: true, at: 5 }, "an object with done, at"],
    [{}, "an object without properties"],
    [[ack()], "an array of 1"],
    [ack, "the function ack"],
    ["acked, and then some more text than fits", '"acked, and then some more text than fits"'],
    ["x".repeat(50), `"${"x".repeat(40)}…"`],
    [null, "null"],
    [false, "false"],
  ];
  for (const [returned, described] of returns) {
    const { error } = await failureOfExpected(orders.subscribe(() => returned as Outcome), ack());
    assert.equal(
      error,
      failed(
        `TypeError: The handler of queue "orders" returned ${described} for message 1; return ` +
          `ack(), retry(), retryAfter(…), drop(), deadLetter() or nothing`,
      ),
    );
  }
});

Deno.test("a handler of batches that returns too few outcomes is told the messages", async () => {
  const subscription = orders.subscribe({ batch: 3 }, () => [ack(), ack()]);
  const { error } = await failureOfExpected(subscription, ack());
  const returned =
    `TypeError: The handler of queue "orders" returned 2 outcomes for 1 message (1); ` +
    `return one for all, or one for each in order`;
  assert.equal(error, failed(returned));

  const broker = new Broker(sqlite(":memory:")).createTables(jobs);
  const publishThree = async (app: TestApp) => {
    await broker.publishMany(orders, [{ order: 1 }, { order: 2 }, { order: 3 }]);
    await app.settled();
    throw app.subscriber(subscription).errors()[0];
  };
  const three = await failureOf({ subscription, broker, test: publishThree });
  assert.equal(three.error, returned.replace("1 message (1)", "3 messages (1, 2, 3)"));
});

Deno.test("a handler that throws what is no Error is told what it has thrown", async () => {
  const throws: readonly (readonly [unknown, string])[] = [
    ["The card was declined", '"The card was declined"'],
    [{ status: 402 }, "an object with status"],
    [undefined, "undefined"],
    [new URL("https://shop.example"), "https://shop.example/"],
  ];
  for (const [thrown, described] of throws) {
    const subscription = orders.subscribe(() => {
      throw thrown;
    });
    const { error } = await failureOfExpected(subscription, ack());
    const wrong = `Error: The handler of queue "orders" threw ${described}; throw an Error`;
    assert.equal(error, failed(wrong));
  }
});

Deno.test("a handler that acks whatever goes wrong is seen by what it should have done", async () => {
  const subscription = orders.subscribe(() => {
    try {
      throw new Error("No such customer");
    } catch {
      return ack();
    }
  });
  const { error } = await failureOfExpected(subscription, retry());
  assert.equal(error, expectation(retry(), "{ kind: 'ack' }", "settled 1 (attempt 1) as ack"));
});
