import assert from "node:assert/strict";
import { ack, TestApp } from "./holdfast.ts";
import { HoldingProcess } from "./holding_process.ts";
import { leaseService } from "./lease_service.ts";
import { rowsOf } from "./rows.ts";
import type { ConformanceTest } from "./test_database.ts";

/** What becomes of a row whose holder is killed. */
export const leaseCrashTests: readonly ConformanceTest[] = [
  {
    name: "the row of a killed process comes back when its lease ends, not before, as attempt 2",
    needs: "processes",
    async run(database) {
      await using holder = await HoldingProcess.start(database.address!, {
        form: "lease",
        lease: 2,
      });
      const { app, subscription } = leaseService(database.connect(), () => ack());
      await using test = await TestApp.startLive(app);
      await holder.kill();
      const [held] = await rowsOf(test);
      assert.equal(held?.attempt, 2);

      while (Date.now() < held.lockedUntil! - 50) {
        test.subscriber(subscription).assertNotCalled();
        await test.advance({ milliseconds: 20 });
      }
      await test.advance({ milliseconds: 1_500 }); // longer than the poll interval
      test.subscriber(subscription).assertCalledOnce().assertSettled(ack());
      assert.equal(test.deliveries[0]?.attempt, 2);
      assert(test.deliveries[0].startedAt >= held.lockedUntil!);
    },
  },
  {
    name: "the row of a living process is renewed beyond its first lease, and not claimed",
    needs: "processes",
    async run(database) {
      await using holder = await HoldingProcess.start(database.address!, {
        form: "lease",
        lease: 1,
      });
      const { app, subscription } = leaseService(database.connect(), () => ack());
      await using test = await TestApp.startLive(app);
      await test.advance({ seconds: 4 });
      test.subscriber(subscription).assertNotCalled();
      assert.equal((await rowsOf(test))[0]?.attempt, 2);
      await holder.kill();
    },
  },
];
