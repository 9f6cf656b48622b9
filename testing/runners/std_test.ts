/** What `jsr:@std/testing` offers, tested where JSR is within reach. */
import { checkAppOnFakeClock } from "./own_fake_clock.ts";
import { testAppSuite } from "./test_app_suite.ts";
import type { TestRunner } from "./test_runner.ts";

/** What is used of `jsr:@std/testing/time`. */
interface StdTime {
  readonly FakeTime: new () => { tickAsync(ms: number): Promise<void>; restore(): void };
}

const bdd = await load<TestRunner>("bdd", () => import("jsr:@std/testing@^1.0.0/bdd"));
if (bdd !== undefined) {
  bdd.describe("by @std/testing/bdd", () => testAppSuite(bdd));
}

const time = await load<StdTime>("time", () => import("jsr:@std/testing@^1.0.0/time"));
if (time !== undefined) {
  Deno.test("an app follows the FakeTime of @std/testing", async () => {
    await checkAppOnFakeClock(() => {
      const clock = new time.FakeTime();
      return { advance: (ms) => clock.tickAsync(ms), restore: () => clock.restore() };
    });
  });
}

async function load<T>(name: string, module: () => Promise<unknown>): Promise<T | undefined> {
  try {
    return await module() as T;
  } catch (error) {
    console.log(`skipped: @std/testing/${name} did not load (${error})`);
    return undefined;
  }
}
