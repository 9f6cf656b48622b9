import assert from "node:assert/strict";
import { report } from "./report.ts";
import type { LatencySample } from "./sample.ts";
import { summarize } from "./summarize.ts";

/** The n-th takes 1 ms to be committed, n ms to arrive, and 2 ms to be consumed. */
function samples(count: number, source: LatencySample["source"]): LatencySample[] {
  return Array.from({ length: count }, (_, index) => ({
    started: 1_000,
    committed: 1_001,
    received: 1_002 + index,
    consumed: 1_004 + index,
    source,
  }));
}

Deno.test("summarize: percentiles are values that were measured, by the nearest rank", () => {
  const { n, broadcast } = summarize(samples(1_000, "broadcast").reverse());
  assert.equal(n, 1_000);
  assert.deepEqual(broadcast?.segments, {
    "write+commit": { p50: 1, p90: 1, p99: 1, max: 1 },
    "broadcast": { p50: 500, p90: 900, p99: 990, max: 1_000 },
    "consume": { p50: 2, p90: 2, p99: 2, max: 2 },
    "end to end": { p50: 503, p90: 903, p99: 993, max: 1_003 },
  });
  assert.equal(broadcast.bottleneck, "broadcast");
});

Deno.test("summarize: what polls have found does not make broadcasts look slow, nor the reverse", () => {
  const slow = {
    started: 0,
    committed: 1,
    received: 3_000,
    consumed: 3_001,
    source: "poll" as const,
  };
  const { broadcast, poll } = summarize([...samples(2, "broadcast"), slow]);
  assert.equal(broadcast?.n, 2);
  assert.equal(broadcast.segments.broadcast.max, 2);
  assert.equal(poll?.n, 1);
  assert.equal(poll.segments.broadcast.p50, 2_999);
  assert.equal(summarize([slow]).broadcast, undefined);
});

Deno.test("summarize: the verdict counts all samples, also those that polls have found", () => {
  const slow = {
    started: 0,
    committed: 1,
    received: 3_000,
    consumed: 3_001,
    source: "poll" as const,
  };
  const objective = { percentile: 50, milliseconds: 2 };
  assert.deepEqual(summarize([...samples(2, "broadcast"), slow], { objective }).verdict, {
    percentile: 50,
    segment: "broadcast",
    milliseconds: 2,
    measured: 2,
    met: true,
  });
  const strict = { milliseconds: 300 };
  const { verdict } = summarize([...samples(2, "broadcast"), slow], { objective: strict });
  assert.deepEqual([verdict?.percentile, verdict?.measured, verdict?.met], [99, 2_999, false]);
});

Deno.test("summarize: the clocks of two hosts may differ", () => {
  const [sample] = samples(1, "broadcast");
  const { broadcast } = summarize([{ ...sample!, received: 990, consumed: 995 }]);
  assert.equal(broadcast?.segments.broadcast.max, 0);
});

Deno.test("summarize: nothing, times out of order and objectives that are none are refused", () => {
  assert.throws(() => summarize([]), RangeError);
  const [sample] = samples(1, "poll");
  assert.throws(() => summarize([{ ...sample!, consumed: 3 }]), /sample 0 has the times/);
  assert.throws(() => summarize([{ ...sample!, received: NaN }]), /sample 0 has the times/);
  const of = (objective: object) => () => summarize([sample!], { objective } as never);
  assert.throws(of({ milliseconds: -1 }), /Cannot promise -1 ms/);
  assert.throws(of({ milliseconds: 1, segment: "lunch" }), /Cannot promise a latency of "lunch"/);
  assert.throws(of({ milliseconds: 1, percentile: 0 }), /percentile 0/);
});

Deno.test("report: plain JSON with its time, to a microsecond", () => {
  const [sample] = samples(1, "broadcast");
  const summary = summarize([{ ...sample!, consumed: 1_004.123456 }]);
  const made = report("Redis", summary);
  assert.deepEqual(JSON.parse(JSON.stringify(made)), made);
  assert.equal(made.name, "Redis");
  assert(Math.abs(Date.parse(made.runAt) - Date.now()) < 60_000);
  assert.equal(made.broadcast?.segments.consume.max, 2.123);
});
