import assert from "node:assert/strict";
import { ack, drop, isOutcome, retry } from "./outcome.ts";

Deno.test("outcomes are plain values that can be compared", () => {
  assert.deepEqual(ack(), { kind: "ack" });
  assert.deepEqual(retry(), { kind: "retry" });
  assert.deepEqual(drop(), { kind: "drop" });
  assert.deepEqual(drop("no such customer"), { kind: "drop", reason: "no such customer" });
  assert.deepEqual(Object.keys(drop()), ["kind"]);
});

Deno.test("an outcome is told from everything else", () => {
  for (const outcome of [ack(), retry(), drop(), drop("reason")]) assert(isOutcome(outcome));
  const others = [undefined, null, "ack", 5, true, {}, [], { kind: "done" }, { kind: null }, ack];
  for (const other of others) assert(!isOutcome(other), String(other));
});
