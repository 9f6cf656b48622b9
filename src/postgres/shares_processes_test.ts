import assert from "node:assert/strict";
import { areShared } from "./shares_processes.ts";

/** Each sighting is a connection, a letter, and the process that served it, a digit. */
function see(text: string) {
  return text.split(" ").map(([connection, process]) => ({
    connection: connection!.charCodeAt(0),
    process: Number(process),
  }));
}

Deno.test("connections that keep a process of their own share none", () => {
  for (const seen of ["a1", "a1 a1", "a1 b2 a1 b2", "a1 b2 b2 a1 c3 a1"]) {
    assert(!areShared(see(seen)), seen);
  }
});

Deno.test("a connection that may have ended leaves its process to another", () => {
  for (const seen of ["a1 b1 b1", "a1 b2 a1 c1 c1", "a1 a1 b1 c1"]) {
    assert(!areShared(see(seen)), seen);
  }
});

Deno.test("a connection that changes its process gives a pooler away", () => {
  for (const seen of ["a1 a2", "a1 b3 a2", "b3 a1 b3 a1 a2"]) assert(areShared(see(seen)), seen);
});

Deno.test("a process that serves another while its connection lasts gives a pooler away", () => {
  for (const seen of ["a1 b1 a1", "a1 c3 b1 c3 a1"]) assert(areShared(see(seen)), seen);
});
