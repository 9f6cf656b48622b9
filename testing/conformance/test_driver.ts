import type { ConformanceTest, TestDatabase } from "./test_database.ts";
import { advisoryLockTests } from "./advisory_lock.ts";
import { drainTests } from "./drain.ts";
import { drainAppTests } from "./drain_app.ts";
import { batchTests } from "./batch.ts";
import { byHandTests } from "./by_hand.ts";
import { commitFaultTests } from "./commit_faults.ts";
import { crashAppTests } from "./crash_app.ts";
import { crashLoopTests } from "./crash_loop.ts";
import { disconnectTests } from "./disconnect.ts";
import { failureTests } from "./failure.ts";
import { feedTests } from "./feed.ts";
import { fifoTests } from "./fifo.ts";
import { fifoCrashTests } from "./fifo_crash.ts";
import { kitClockTests } from "./kit_clock.ts";
import { kitLiveTests } from "./kit_live.ts";
import { kitDeterminismTests } from "./kit_determinism.ts";
import { kitPublishedTests } from "./kit_published.ts";
import { kitIdlePollTests } from "./kit_idle_polls.ts";
import { leaseClaimTests } from "./lease_claim.ts";
import { leaseCrashTests } from "./lease_crash.ts";
import { leaseRenewTests } from "./lease_renew.ts";
import { leaseSettleTests } from "./lease_settle.ts";
import { leaseTokenTests } from "./lease_token.ts";
import { rowLockTests } from "./row_lock.ts";
import { rolesTests } from "./roles.ts";
import { nextDueTests } from "./next_due.ts";
import { outcomeTableTests } from "./outcome_table.ts";
import { publishTests } from "./publish.ts";
import { publishedTests } from "./published.ts";
import { publishingTests } from "./publishing.ts";
import { transactionalTests } from "./transactional.ts";
import { scheduleTests } from "./schedule.ts";
import { seamTests } from "./seams.ts";
import { skewTests } from "./skew.ts";
import { startTests } from "./start.ts";
import { stopTests } from "./stop.ts";
import { virtualTimeTests } from "./virtual_time.ts";
import { waitForTests } from "./wait_for.ts";

/** What a database cannot offer, and so which tests do not run on it. */
export interface Skip {
  /** Why, as it is printed. */
  readonly reason: string;
  /** The needs that are not met. */
  readonly needs: readonly NonNullable<ConformanceTest["needs"]>[];
}

/** Registers the conformance suite for a database. What is skipped is printed. */
export function testDriver(
  name: string,
  open: () => Promise<TestDatabase>,
  { skip }: { readonly skip?: Skip } = {},
): void {
  for (const test of SUITE) {
    const skipped = test.needs !== undefined && skip?.needs.includes(test.needs) === true;
    if (skipped) console.log(`skipped on ${name}: ${test.name} (${skip.reason})`);
    else {
      Deno.test(`${name}: ${test.name}`, async () => {
        await using database = await open();
        await test.run(database);
      });
    }
  }
}

const SUITE: readonly ConformanceTest[] = [
  ...startTests,
  ...publishTests,
  ...publishingTests,
  ...leaseClaimTests,
  ...leaseSettleTests,
  ...leaseRenewTests,
  ...leaseTokenTests,
  ...leaseCrashTests,
  ...rowLockTests,
  ...advisoryLockTests,
  ...rolesTests,
  ...outcomeTableTests,
  ...nextDueTests,
  ...failureTests,
  ...crashLoopTests,
  ...batchTests,
  ...byHandTests,
  ...transactionalTests,
  ...commitFaultTests,
  ...virtualTimeTests,
  ...crashAppTests,
  ...seamTests,
  ...disconnectTests,
  ...skewTests,
  ...drainAppTests,
  ...waitForTests,
  ...publishedTests,
  ...kitIdlePollTests,
  ...kitPublishedTests,
  ...kitDeterminismTests,
  ...kitClockTests,
  ...kitLiveTests,
  ...feedTests,
  ...fifoTests,
  ...fifoCrashTests,
  ...stopTests,
  ...scheduleTests,
  ...drainTests,
];
