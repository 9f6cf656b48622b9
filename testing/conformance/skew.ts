import assert from "node:assert/strict";
import { ack, type Driver, retryAfter, type Subscription, TestApp } from "./holdfast.ts";
import { FULL_TABLES } from "./full_service.ts";
import { type FormTest, inEachForm } from "./in_each_form.ts";
import type { Job, JobHandler } from "./lease_service.ts";
import { HOST_TABLES, queueOf, type RolesInbox, rolesService, subscribe } from "./roles_service.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

const MINUTE = 60_000;
const SKEW = 10 * MINUTE;

/** Two processes of one service, the first ahead of the database, the second behind it. */
interface Pair extends AsyncDisposable {
  readonly ahead: TestApp;
  readonly behind: TestApp;
}

async function startPair(
  database: TestDatabase,
  table: RolesInbox,
  ahead: Subscription<Job>,
  behind: Subscription<Job>,
): Promise<Pair> {
  const driver = database.connect();
  const first = await TestApp.start(rolesService(driver, table, ahead), { skew: SKEW });
  const other = rolesService(secondDriver(database, driver), table, behind);
  const second = await TestApp.join(first, other, { skew: -SKEW });
  return {
    ahead: first,
    behind: second,
    async [Symbol.asyncDispose](): Promise<void> {
      await second.stop();
      await first.stop();
    },
  };
}

/** Where there is one connection only, it is shared. */
function secondDriver(database: TestDatabase, driver: Driver): Driver {
  return database.address === undefined ? driver : database.connect();
}

function handles(table: RolesInbox, handle: JobHandler): Subscription<Job> {
  const lease = table.form === "lease" ? { lease: { minutes: 1 } } : {};
  return subscribe(table, "jobs", handle, { ...lease, pollInterval: 1_000 } as never);
}

const tests: readonly FormTest[] = [
  {
    name: "hosts whose clocks are ten minutes off work by the database's, and see their own",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const skews: number[] = [];
      const starts: number[] = [];
      const handle = (skew: number): JobHandler => async (_, delivery) => {
        skews.push(Date.now() - Math.floor(pair.ahead.time.now) - skew);
        starts.push(pair.ahead.time.now - published);
        if (starts.length === 1) return retryAfter({ minutes: 20 });
        await sleep(15 * MINUTE); // much longer than the lease
        assert.equal(delivery.signal.aborted, false);
        return ack();
      };
      const [ahead, behind] = [SKEW, -SKEW].map((skew) => handles(table, handle(skew)));
      await using pair = await startPair(database, table, ahead!, behind!);
      const published = pair.ahead.time.now;
      await pair.ahead.publish(queueOf(table, "jobs"), { name: "a" }, { delay: 3 * MINUTE });
      await pair.behind.advance({ hours: 1 });
      assert.deepEqual(skews, [0, 0]);
      assertWithin(starts[0]!, 3 * MINUTE, 3 * MINUTE + 2_000);
      assertWithin(starts[1]! - starts[0]!, 20 * MINUTE, 20 * MINUTE + 2_000);
      const deliveries = [...pair.ahead.deliveries, ...pair.behind.deliveries];
      assert(deliveries.every(({ settled }) => settled));
      assert.doesNotMatch(`${pair.ahead.trace}${pair.behind.trace}`, /: lost /);
      assert.deepEqual(await pair.ahead.query("SELECT id FROM jobs"), []);
    },
  },
  {
    name: "a time to publish at is the database's, whichever host publishes",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const [ahead, behind] = [1, 2].map(() => handles(table, () => ack()));
      await using pair = await startPair(database, table, ahead!, behind!);
      const { time } = pair.ahead;
      for (const app of [pair.ahead, pair.behind]) {
        const at = new Date(time.now + 5 * MINUTE);
        await app.publish(queueOf(table, "jobs"), { name: "a" }, { at });
        await app.advance({ minutes: 4 });
        assert.equal((await app.query("SELECT id FROM jobs")).length, 1);
        await app.advance({ minutes: 2 });
        assert.deepEqual(await app.query("SELECT id FROM jobs"), []);
      }
    },
  },
];

const hostTests: readonly FormTest[] = [
  {
    name: "by the host's clock a delay ends earlier for a host that is ahead of the publisher",
    async run(database, form) {
      const table = HOST_TABLES[form];
      const jobs = handles(table, () => ack());
      const driver = database.connect();
      await using test = await TestApp.start(rolesService(driver, table), { skew: 0 });
      const other = rolesService(secondDriver(database, driver), table, jobs);
      await using ahead = await TestApp.join(test, other, { skew: SKEW });
      await test.publish(queueOf(table, "jobs"), { name: "a" }, { delay: 15 * MINUTE });
      await test.advance({ minutes: 4 });
      ahead.subscriber(jobs).assertNotCalled();
      await test.advance({ minutes: 2 });
      ahead.subscriber(jobs).assertCalledOnce().assertSettled(ack());
    },
  },
  {
    name: "by the host's clock a delay ends later for a host that is behind the publisher",
    async run(database, form) {
      const table = HOST_TABLES[form];
      const jobs = handles(table, () => ack());
      const driver = database.connect();
      await using test = await TestApp.start(rolesService(driver, table));
      const other = rolesService(secondDriver(database, driver), table, jobs);
      await using behind = await TestApp.join(test, other, { skew: -SKEW });
      await test.publish(queueOf(table, "jobs"), { name: "a" }, { delay: 5 * MINUTE });
      await test.advance({ minutes: 14 });
      behind.subscriber(jobs).assertNotCalled();
      await behind.drain();
      behind.subscriber(jobs).assertCalledOnce().assertSettled(ack());
      assertWithin(test.time.elapsed, 15 * MINUTE, 15 * MINUTE + 2_000);
    },
  },
  {
    name: "by the host's clock a host that is ahead takes a lease that its holder still renews",
    forms: ["lease"],
    async run(database, form) {
      const table = HOST_TABLES[form];
      const jobs = handles(table, async () => {
        await sleep(3 * MINUTE);
        return ack();
      });
      const quick = handles(table, () => ack());
      const driver = database.connect();
      await using test = await TestApp.start(rolesService(driver, table, jobs));
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      const other = rolesService(secondDriver(database, driver), table, quick);
      await using ahead = await TestApp.join(test, other, { skew: SKEW });
      await test.advance({ minutes: 5 });
      ahead.subscriber(quick).assertCalledOnce().assertSettled(ack());
      assert.match(String(test.trace), /jobs: lost \d+/);
      assert.equal(test.deliveries[0]?.settled, false);
    },
  },
];

function assertWithin(actual: number, least: number, most: number): void {
  assert(actual >= least && actual <= most, `${actual} ms, not ${least} to ${most} ms`);
}

/** What clocks of hosts that are off do, and what they do not. */
export const skewTests: readonly ConformanceTest[] = inEachForm([...tests, ...hostTests]);
