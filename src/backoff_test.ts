import assert from "node:assert/strict";
import { FakeTime } from "../testing/mod.ts";
import { AFTER_DISCONNECT, AFTER_FAILURE, backoff } from "./backoff.ts";

/** The longest delay that may be drawn, seen in many draws. */
function drawn(attempt: number, curve: { first: number; cap: number }): number[] {
  return Array.from({ length: 2_000 }, () => backoff(attempt, curve));
}

Deno.test("the longest delay doubles with each attempt up to the cap", () => {
  using time = new FakeTime();
  time.run(() => {
    const curve = { first: 100, cap: 1_000 };
    for (
      const [attempt, longest] of [[1, 100], [2, 200], [3, 400], [4, 800], [5, 1_000], [60, 1_000]]
    ) {
      const delays = drawn(attempt!, curve);
      assert(Math.max(...delays) < longest!, `attempt ${attempt}`);
      assert(Math.max(...delays) > longest! * 0.95, `attempt ${attempt}`);
      assert(Math.min(...delays) < longest! * 0.05, `attempt ${attempt}: full jitter`);
      assert(Math.min(...delays) >= 0);
      const mean = delays.reduce((sum, each) => sum + each) / delays.length;
      assert(Math.abs(mean - longest! / 2) < longest! * 0.05, `attempt ${attempt}: mean ${mean}`);
    }
  });
});

Deno.test("a delay is finite for every attempt that a column can hold", () => {
  for (const attempt of [0, -1, 1_000, 2_147_483_647, Number.MAX_SAFE_INTEGER]) {
    const delay = backoff(attempt, AFTER_FAILURE);
    assert(delay >= 0 && delay <= AFTER_FAILURE.cap, `attempt ${attempt}: ${delay}`);
  }
  assert(backoff(5, { first: 0, cap: 0 }) === 0);
});

Deno.test("the curves in use begin below their cap", () => {
  for (const { first, cap } of [AFTER_FAILURE, AFTER_DISCONNECT]) assert(first > 0 && first < cap);
});

Deno.test("under a test harness the delays are the same in every run", () => {
  const run = () => {
    using time = new FakeTime({ seed: 7 });
    return time.run(() => [1, 2, 3].map((attempt) => backoff(attempt, AFTER_FAILURE)));
  };
  assert.deepEqual(run(), run());
});
