import assert from "node:assert/strict";
import { slotsOf } from "./slots.ts";

const iso = (time: number | undefined): string | undefined =>
  time === undefined ? undefined : new Date(time).toISOString();

Deno.test("slots follow one another, each after the one before", async () => {
  const slots = await slotsOf("*/20 * * * *", undefined);
  let time = Date.UTC(2026, 0, 1, 0, 0);
  const found: (string | undefined)[] = [];
  for (let n = 0; n < 3; n++) {
    time = slots.after(time)!;
    found.push(iso(time));
  }
  assert.deepEqual(found, [
    "2026-01-01T00:20:00.000Z",
    "2026-01-01T00:40:00.000Z",
    "2026-01-01T01:00:00.000Z",
  ]);
});

Deno.test("a time zone decides when a day begins, in winter and in summer", async () => {
  const slots = await slotsOf("0 6 * * *", "Europe/Berlin");
  assert.equal(iso(slots.after(Date.UTC(2026, 0, 10))), "2026-01-10T05:00:00.000Z");
  assert.equal(iso(slots.after(Date.UTC(2026, 6, 10))), "2026-07-10T04:00:00.000Z");
});

Deno.test("of a night whose clocks are changed each slot comes once", async () => {
  const slots = await slotsOf("30 2 * * *", "Europe/Berlin");
  for (const [month, day] of [[2, 28], [9, 24]] as const) {
    const start = Date.UTC(2026, month, day, 12);
    const found: number[] = [];
    for (let time = slots.after(start)!; time < start + 3 * 86_400_000; time = slots.after(time)!) {
      found.push(time);
    }
    assert.equal(found.length, 3, found.map(iso).join(", "));
  }
});

Deno.test("the last slot of a span is found, whatever number of them passed", async () => {
  const slots = await slotsOf("0 * * * *", "UTC");
  const noon = Date.UTC(2026, 0, 1, 12);
  assert.equal(slots.lastBetween(noon - 86_400_000, noon), noon);
  assert.equal(slots.lastBetween(noon - 86_400_000, noon + 1_800_000), noon);
  assert.equal(slots.lastBetween(noon, noon + 1_800_000), undefined);
});

Deno.test("a pattern without any slot has none, and what is no pattern is refused", async () => {
  const slots = await slotsOf("0 0 30 2 *", "UTC");
  assert.equal(slots.after(0), undefined);
  await assert.rejects(slotsOf("every day", "UTC"), /Cannot schedule by "every day"/);
  await assert.rejects(slotsOf("* * * * *", "Mars/Olympus"), /"Mars\/Olympus"/);
});
