import assert from "node:assert/strict";
import { sqlite } from "../src/sqlite/mod.ts";
import { thirtyDays } from "./programs/thirty_days.ts";

Deno.test("thirty days of hourly jobs, failures and crashes pass in seconds, and nothing is lost", async () => {
  const driver = sqlite(":memory:");
  assert.deepEqual(await thirtyDays(() => driver), {
    slots: 720,
    published: 5_000,
    done: 5_000,
    mostOften: 1,
    failed: 2_000,
    crashed: 120,
    left: 0,
  });
});
