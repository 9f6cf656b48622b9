import assert from "node:assert/strict";
import { TestApp } from "../testing/mod.ts";
import { App } from "./app.ts";
import { Broker } from "./broker.ts";
import { codec } from "./codec.ts";
import { PayloadError } from "./errors.ts";
import { inbox } from "./inbox.ts";
import { sqlite } from "./sqlite/mod.ts";

const dates = codec("body", {
  encode: (date: Date) => date.toISOString(),
  decode: (stored) => new Date(stored),
});
const reversed = codec("body", {
  storage: "bytes",
  encode: async (message: string) => {
    await Promise.resolve();
    return new TextEncoder().encode(message).reverse();
  },
  decode: async (stored) => {
    await Promise.resolve();
    return new TextDecoder().decode(stored.slice().reverse());
  },
});

Deno.test("a codec decides how a message is stored, as text unless it says bytes", async () => {
  assert.deepEqual([dates.column, dates.storage], ["body", "text"]);
  assert.deepEqual([reversed.column, reversed.storage], ["body", "bytes"]);
  const date = new Date(Date.UTC(2026, 0, 31));
  assert.equal(await dates.encode(date), "2026-01-31T00:00:00.000Z");
  assert.deepEqual(await dates.decode("2026-01-31T00:00:00.000Z"), date);
  assert.deepEqual(await reversed.encode("abc"), new Uint8Array([99, 98, 97]));
  assert.equal(await reversed.decode(new Uint8Array([99, 98, 97])), "abc");
});

Deno.test("decode gets what it has declared, whatever the column returns", async () => {
  const date = new Date(Date.UTC(2026, 0, 31));
  assert.deepEqual(await dates.decode(new TextEncoder().encode(date.toISOString())), date);
  assert.equal(await reversed.decode("cba"), "abc");
  await assert.rejects(async () => await dates.decode(new Uint8Array([0xff])), TypeError);
});

Deno.test("an encode that gives something else than declared is refused with the fix", async () => {
  const cases: [Parameters<typeof codec>[1], RegExp][] = [
    [
      { encode: () => new Uint8Array(1) as never, decode: String },
      /the codec gave object; let encode give a string, or declare storage: "bytes"$/,
    ],
    [{ encode: () => undefined as never, decode: String }, /the codec gave undefined; /],
    [
      { storage: "bytes", encode: () => "text" as never, decode: String },
      /the codec gave string; let encode give a Uint8Array$/,
    ],
    [{ encode: () => Promise.resolve(5 as never), decode: String }, /the codec gave number; /],
  ];
  for (const [each, pattern] of cases) {
    await assert.rejects(async () => await codec("body", each).encode(1), (error: Error) => {
      assert(error instanceof PayloadError);
      assert.match(error.message, pattern);
      return true;
    });
  }
});

Deno.test("what a codec throws is the cause of a PayloadError, and nothing is written", async () => {
  const jobs = inbox("jobs", {
    id: "id",
    attempt: "attempt",
    lockedUntil: "locked_until",
    payload: codec("payload", {
      encode(message: string) {
        if (message === "unencodable") throw new RangeError("too odd");
        return message;
      },
      decode(stored) {
        if (stored === "undecodable") throw new RangeError("even odder");
        return stored;
      },
    }),
  });
  const subscription = jobs.queue().subscribe(() => assert.fail("it must not be delivered"));
  const broker = new Broker(sqlite(":memory:")).createTables(jobs).include(subscription);
  await using app = await TestApp.start(new App({ name: "app" }).withBroker(broker));
  await assert.rejects(app.publish(jobs.queue(), "unencodable"), (error: Error) => {
    assert(error instanceof PayloadError);
    assert.equal(
      error.message,
      'Cannot publish to queue "jobs", "jobs"."payload" cannot hold the message: too odd; ' +
        "nothing was written",
    );
    assert(error.cause instanceof RangeError);
    return true;
  });
  assert.deepEqual(await app.query("SELECT * FROM jobs"), []);

  await app.publish(jobs.queue(), "undecodable");
  const [delivery] = app.deliveries;
  assert(delivery?.error instanceof PayloadError);
  assert.match(
    delivery.error.message,
    /^Cannot decode "jobs"\."payload" of message 1 \(queue "jobs"\): even odder; the row is kept/,
  );
  assert(delivery.error.cause instanceof RangeError);
  const [row] = await app.query("SELECT payload, attempt FROM jobs");
  assert.deepEqual({ ...row }, { payload: "undecodable", attempt: 2n }, "it counts as an attempt");
});
