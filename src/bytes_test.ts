import assert from "node:assert/strict";
import { TestApp } from "../testing/mod.ts";
import { App } from "./app.ts";
import { Broker } from "./broker.ts";
import { bytes } from "./bytes.ts";
import { PayloadError } from "./errors.ts";
import { inbox } from "./inbox.ts";
import { sqlite } from "./sqlite/mod.ts";

Deno.test("bytes are stored as they are", async () => {
  const payload = bytes("body");
  assert.deepEqual([payload.column, payload.storage], ["body", "bytes"]);
  const message = new Uint8Array([0, 255, 7]);
  assert.equal(await payload.encode(message), message);
  assert.equal(await payload.decode(message), message);
  assert.deepEqual(await payload.decode("ü"), new Uint8Array([0xc3, 0xbc]), "text is its UTF-8");
});

Deno.test("what is not bytes is refused", () => {
  for (
    const message of [
      "text",
      5,
      null,
      undefined,
      [1, 2],
      new ArrayBuffer(2),
      new DataView(new ArrayBuffer(1)),
    ]
  ) {
    assert.throws(() => bytes("body").encode(message as never), (error: Error) => {
      assert(error instanceof PayloadError);
      assert.match(error.message, /is not bytes; give a Uint8Array$/);
      return true;
    });
  }
});

Deno.test("bytes go through a table unchanged, none and views of a larger buffer too", async () => {
  const jobs = inbox("jobs", { id: "id", lockedUntil: "locked_until", payload: bytes("payload") });
  const subscription = jobs.queue().subscribe(() => {});
  const broker = new Broker(sqlite(":memory:")).createTables(jobs).include(subscription);
  await using app = await TestApp.start(new App({ name: "app" }).withBroker(broker));
  const messages = [
    new Uint8Array([0, 255, 0]),
    new Uint8Array(0),
    new Uint8Array([1, 2, 3, 4]).subarray(1, 3),
    Uint8Array.from({ length: 100_000 }, (_, index) => index % 251),
  ];
  for (const message of messages) await app.publish(jobs.queue(), message);
  assert.deepEqual(
    app.subscriber(subscription).received().map((each) => Array.from(each)),
    messages.map((each) => Array.from(each)),
  );
});
