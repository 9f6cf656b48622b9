import assert from "node:assert/strict";
import { TestApp } from "../testing/mod.ts";
import { App } from "./app.ts";
import { Broker } from "./broker.ts";
import { PayloadError } from "./errors.ts";
import { inbox } from "./inbox.ts";
import { sqlite } from "./sqlite/mod.ts";
import { text } from "./text.ts";

Deno.test("text is stored as it is", async () => {
  const payload = text("body");
  assert.deepEqual([payload.column, payload.storage], ["body", "text"]);
  for (const message of ["", "hello", "{}", "Grüße 🙂", " \r\n"]) {
    assert.equal(await payload.encode(message), message);
    assert.equal(await payload.decode(message), message);
  }
});

Deno.test("text that a column returns as bytes is read as UTF-8, or refused", async () => {
  assert.equal(await text("body").decode(new TextEncoder().encode("Grüße 🙂")), "Grüße 🙂");
  assert.throws(() => text("body").decode(new Uint8Array([0xff])), TypeError);
});

Deno.test("what is not text, and text that no database stores, is refused", () => {
  for (const message of [5, null, undefined, {}, new Uint8Array(1)]) {
    assert.throws(() => text("body").encode(message as string), (error: Error) => {
      assert(error instanceof PayloadError);
      assert.match(error.message, /is not text; give a string$/);
      return true;
    });
  }
  for (const message of ["\ud83d", "a\udc00b"]) {
    assert.throws(() => text("body").encode(message), (error: Error) => {
      assert(error instanceof PayloadError);
      assert.match(error.message, /lone surrogate/);
      return true;
    });
  }
});

Deno.test("text with a NUL is delivered whole or refused, never cut", async () => {
  const jobs = inbox("jobs", { id: "id", lockedUntil: "locked_until", payload: text("payload") });
  const subscription = jobs.queue().subscribe(() => {});
  const broker = new Broker(sqlite(":memory:")).createTables(jobs).include(subscription);
  await using app = await TestApp.start(new App({ name: "app" }).withBroker(broker));
  const published = await app.publish(jobs.queue(), "before\0after").catch((error) => {
    assert(error instanceof PayloadError);
  });
  assert.deepEqual(
    app.subscriber(subscription).received(),
    published === undefined ? [] : ["before\0after"],
  );
});
