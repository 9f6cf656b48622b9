/** Runs by `node --test`. */
import { it, mock } from "node:test";
import { nodeSuite } from "./node_suite.ts";
import { checkAppOnFakeClock } from "./own_fake_clock.ts";

nodeSuite({ it });

it("an app follows the mock timers of node:test", async () => {
  await checkAppOnFakeClock(() => {
    mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"], now: Date.now() });
    return {
      advance: async (ms) => {
        mock.timers.tick(ms);
        await new Promise((resolve) => setImmediate(resolve));
      },
      restore: () => mock.timers.reset(),
    };
  });
});
