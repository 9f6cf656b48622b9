import assert from "node:assert/strict";
import { DeclarationError, PayloadError } from "./errors.ts";
import { inbox } from "./inbox.ts";
import { checkPublish, type PublishOptions } from "./publish_options.ts";
import type { AnyQueue } from "./queue.ts";
import { text } from "./text.ts";

// deno-lint-ignore no-explicit-any -- any class of errors
type ErrorClass = new (...args: any[]) => Error;

const plain: AnyQueue = inbox("plain", { id: "id", payload: text("body") }).queue();
const full: AnyQueue = inbox("full", {
  id: "id",
  payload: text("body"),
  priority: "priority",
  retryAfter: "due",
  partitionKey: "part",
  uniqueKey: "dedup",
  headers: "meta",
}).queue();

Deno.test("without options a message is due at once, with priority 0", () => {
  const none = {
    priority: 0n,
    delay: 0,
    at: undefined,
    key: null,
    uniqueKey: null,
    headers: null,
    columns: {},
  };
  assert.deepEqual(checkPublish(plain, {}), none);
  assert.deepEqual(checkPublish(full, {}), none);
});

Deno.test("keys and headers are taken as text", () => {
  const { key, uniqueKey, headers } = checkPublish(full, {
    key: "a",
    uniqueKey: "b",
    headers: { trace: "c" },
  });
  assert.deepEqual([key, uniqueKey, headers], ["a", "b", '{"trace":"c"}']);
});

Deno.test("delays, times and priorities are taken in every form", () => {
  assert.equal(checkPublish(full, { delay: { minutes: 1 } }).delay, 60_000);
  assert.equal(checkPublish(full, { at: new Date(5) }).at, 5);
  assert.equal(checkPublish(full, { at: { epochMilliseconds: 7 } }).at, 7);
  assert.equal(checkPublish(full, { priority: -3 }).priority, -3n);
  assert.equal(checkPublish(full, { priority: 2n ** 62n }).priority, 2n ** 62n);
});

const ROLE_OPTIONS: readonly PublishOptions[] = [
  { delay: 1 },
  { at: new Date(0) },
  { priority: 1 },
  { key: "a" },
  { uniqueKey: "a" },
  { headers: {} },
];

Deno.test("an option that needs a role is refused without it", () => {
  for (const options of ROLE_OPTIONS) {
    assert.throws(() => checkPublish(plain, options), DeclarationError);
    checkPublish(full, options);
  }
});

Deno.test("values that cannot be meant are refused", () => {
  const refused: readonly [unknown, ErrorClass][] = [
    [{ delay: -1 }, RangeError],
    [{ delay: Infinity }, RangeError],
    [{ delay: { days: 40_000 } }, RangeError],
    [{ delay: 1, at: new Date(0) }, TypeError],
    [{ at: new Date(NaN) }, TypeError],
    [{ at: "2026-01-31" }, TypeError],
    [{ at: new Date(-1) }, TypeError],
    [{ priority: 1.5 }, RangeError],
    [{ priority: "high" }, RangeError],
    [{ columns: 5 }, TypeError],
    [{ columns: null }, TypeError],
    [{ columns: [1] }, TypeError],
    [{ columns: { a: {} } }, TypeError],
    [{ columns: { a: NaN } }, TypeError],
    [{ key: "" }, TypeError],
    [{ key: 5 }, TypeError],
    [{ key: null }, TypeError],
    [{ uniqueKey: "" }, TypeError],
    [{ uniqueKey: 5 }, TypeError],
    [{ key: "\0" }, PayloadError],
    [{ uniqueKey: "\ud800" }, PayloadError],
    [{ headers: { a: 5 } }, PayloadError],
    [null, TypeError],
  ];
  for (const [options, kind] of refused) {
    assert.throws(() => checkPublish(full, options as never), kind, JSON.stringify(options));
  }
});

Deno.test("columns cross exactly, and those that play a role are refused", () => {
  const columns = { a: 1, b: 2.5, c: true, d: null, e: 2n ** 60n, f: "text" };
  assert.deepEqual(checkPublish(full, { columns }).columns, {
    a: 1n,
    b: "2.5",
    c: 1n,
    d: null,
    e: 2n ** 60n,
    f: "text",
  });
  for (const column of ["id", "body", "priority", "due", "DUE", "Id", "part", "dedup", "meta"]) {
    assert.throws(
      () => checkPublish(full, { columns: { [column]: 1 } }),
      (error: unknown) => error instanceof DeclarationError && error.message.includes("plays the"),
      column,
    );
  }
});
