import assert from "node:assert/strict";
import { within } from "./within.ts";

// The first timer of its program, and so the first test of this file.
Deno.test("work that is done before the first timer of a program leaves no timer behind", async () => {
  assert.equal(await within(5_000, Promise.resolve()), true);
});
