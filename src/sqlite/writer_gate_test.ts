import assert from "node:assert/strict";
import { DriverError } from "../errors.ts";
import { shareGate, unshareGate, WriterGate } from "./writer_gate.ts";

/** Lets everything happen that need not wait. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 0));

Deno.test("one at a time is inside, in order of arrival", async () => {
  const gate = new WriterGate();
  const order: string[] = [];
  let inside = 0;
  await Promise.all(["a", "b", "c", "d"].map(async (name) => {
    await gate.enter();
    assert.equal(++inside, 1);
    order.push(name);
    await settle();
    inside--;
    gate.leave();
  }));
  assert.deepEqual(order, ["a", "b", "c", "d"]);
});

Deno.test("who leaves hands over to who waits, and nobody slips in between", async () => {
  const gate = new WriterGate();
  const seen = new Set<string>();
  await gate.enter();
  const waiting = gate.enter().then(() => seen.add("waiting"));
  await settle();
  assert.deepEqual([...seen], []);
  gate.leave();
  const late = gate.enter().then(() => seen.add("late"));
  await settle();
  assert.deepEqual([...seen], ["waiting"]);
  gate.leave();
  await late;
  await waiting;
  gate.leave();
  await gate.enter(); // it is open again
  gate.leave();
});

Deno.test("connections to one file share a gate, those to others do not", () => {
  const one = shareGate("/data/one.db", "node:sqlite");
  const again = shareGate("/data/one.db", "node:sqlite");
  const other = shareGate("/data/other.db", "node:sqlite");
  assert.equal(one, again);
  assert.notEqual(one, other);
  unshareGate("/data/one.db");
  assert.equal(shareGate("/data/one.db", "node:sqlite"), one, "somebody still has it");
  for (let users = 0; users < 2; users++) unshareGate("/data/one.db");
  assert.notEqual(shareGate("/data/one.db", "node:sqlite"), one, "nobody had it any more");
  unshareGate("/data/one.db");
  unshareGate("/data/other.db");
  unshareGate("/data/other.db"); // once too often is nothing
});

Deno.test("two libraries on one file are refused, for they do not see each other's locks", () => {
  const gate = shareGate("/data/jobs.db", "node:sqlite");
  assert.throws(() => shareGate("/data/jobs.db", "@db/sqlite"), (error: unknown) => {
    assert(error instanceof DriverError);
    assert.equal(error.kind, "unusable");
    assert.match(
      error.message,
      /"\/data\/jobs\.db" with @db\/sqlite: .* open with node:sqlite.*use one library for it$/,
    );
    return true;
  });
  assert.equal(shareGate("/data/jobs.db", "node:sqlite"), gate, "the refused one does not count");
  for (let users = 0; users < 2; users++) unshareGate("/data/jobs.db");
  shareGate("/data/jobs.db", "@db/sqlite");
  unshareGate("/data/jobs.db");
});
