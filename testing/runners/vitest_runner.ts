/** Runs by `vitest run`, on Node. */
import assert from "node:assert/strict";
import { DeclarationError } from "@holdfast/inbox";
import { sqlite } from "@holdfast/inbox/sqlite";
import { TestApp } from "@holdfast/inbox/testing";
import { afterEach, beforeEach, describe, it, vi } from "vitest";
import { napService } from "./nap_service.ts";
import { nodeSuite } from "./node_suite.ts";
import { checkAppOnFakeClock } from "./own_fake_clock.ts";
import { testAppSuite } from "./test_app_suite.ts";

testAppSuite({ describe, it, beforeEach, afterEach });
nodeSuite({ it });

it("an app follows the fake timers of Vitest", async () => {
  await checkAppOnFakeClock(() => {
    vi.useFakeTimers();
    return {
      advance: (ms) => vi.advanceTimersByTimeAsync(ms),
      restore: () => vi.useRealTimers(),
    };
  });
});

it("a TestApp is refused while Vitest's timers are fake, and starts after", async () => {
  const { app } = napService(sqlite(":memory:"));
  vi.useFakeTimers();
  try {
    await assert.rejects(async () => await TestApp.start(app), DeclarationError);
  } finally {
    vi.useRealTimers();
  }
  await (await TestApp.start(app)).stop();
});

describe("beside an app on virtual time", () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await TestApp.start(napService(sqlite(":memory:")).app, { now: 0 });
  });
  afterEach(async () => void await app.stop());

  it("what Vitest waits for comes in real time", async () => {
    const begin = Date.now();
    await vi.waitFor(() => assert.ok(Date.now() > begin), { interval: 1 });
    await vi.waitUntil(() => Date.now() > begin + 1, { interval: 1 });
    assert.equal(app.time.elapsed, 0);
  });

  it.fails("a test that never ends is ended by Vitest's timeout", { timeout: 20 }, async () => {
    await new Promise(() => {});
  });
});
