import FakeTimers from "@sinonjs/fake-timers";
import assert from "node:assert/strict";
import { DeclarationError } from "@holdfast/inbox";
import { FakeTime } from "@holdfast/inbox/testing";
import { checkAppOnFakeClock } from "./own_fake_clock.ts";

Deno.test("an app follows @sinonjs/fake-timers, which Jest and Vitest use", async () => {
  await checkAppOnFakeClock(() => {
    const clock = FakeTimers.install();
    return { advance: (ms) => clock.tickAsync(ms), restore: () => clock.uninstall() };
  });
});

Deno.test("a FakeTime is refused while @sinonjs/fake-timers is installed, and works after", () => {
  const clock = FakeTimers.install();
  try {
    assert.throws(() => new FakeTime(), (error: unknown) => {
      assert.ok(error instanceof DeclarationError);
      assert.match(error.message, /is already replaced, probably by another fake clock/);
      return true;
    });
  } finally {
    clock.uninstall();
  }
  new FakeTime()[Symbol.dispose]();
});
