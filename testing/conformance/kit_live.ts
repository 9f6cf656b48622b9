import assert from "node:assert/strict";
import { ack, retryAfter, TestApp } from "./holdfast.ts";
import { FULL_TABLES, type FullInbox } from "./full_service.ts";
import { type FormTest, inEachForm } from "./in_each_form.ts";
import { queueOf, rolesService, subscribe } from "./roles_service.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

const STARTS = { start: TestApp.start, startLive: TestApp.startLive };

const tests: readonly FormTest[] = Object.entries(STARTS).map(([name, start]): FormTest => ({
  name: `one test body passes by ${name}: of waits, retries, faults, holds, drains and publishes`,
  run: (database, form) => runBody(database, FULL_TABLES[form], start),
}));

async function runBody(
  database: TestDatabase,
  table: FullInbox,
  start: typeof STARTS.start | typeof STARTS.startLive,
): Promise<void> {
  const [queue, replies] = [queueOf(table, "jobs"), queueOf(table, "replies")];
  const pollInterval = 100;
  const jobs = subscribe(table, "jobs", async ({ name }, delivery) => {
    await sleep(50);
    if (name === "fails" && delivery.attempt === 1) throw new Error("No luck");
    if (name === "waits" && delivery.attempt === 1) return retryAfter(200);
    await delivery.publish(replies, { name: `re: ${name}` });
    return ack();
  }, { pollInterval });
  const answers = subscribe(table, "replies", () => ack(), { pollInterval });
  const driver = database.connect();
  await using test = await start(rolesService(driver, table, jobs, answers));

  await test.assertPublished(replies, { name: "re: a" }, async () => {
    await test.publish(queue, { name: "a" });
    await test.settled();
  });
  await test.waitFor(() => test.subscriber(answers).assertCalledOnce());
  await test.assertNotPublished(replies, { name: "re: later" }, async () => {
    await test.publish(queue, { name: "later" }, { delay: 700 });
    await test.advance({ milliseconds: 100 });
  });
  await test.waitFor(() => test.subscriber(answers).assertCalled(2));

  for (const name of ["fails", "waits"]) await test.publish(queue, { name });
  const { outcomes, errors } = await test.drain();
  assert.deepEqual([outcomes, errors], [{ ack: 4, retry: 1, retryAfter: 1 }, 1]);

  using hold = test.holdAt("before settle", jobs);
  await test.publish(queue, { name: "held" });
  await hold.reached();
  await test.advance(100);
  assert.equal(hold.deliveries.length, 1);
  await hold.release();
  await test.waitFor(() => test.subscriber(answers).assertReceived({ name: "re: held" }));

  await test.disconnect({ for: 300 });
  await test.waitFor(() => test.publish(queue, { name: "after the outage" }).catch(() => false));
  await test.waitFor(() =>
    test.subscriber(answers).assertReceived({ name: "re: after the outage" })
  );
  await test.drain();
  assert.deepEqual(await test.query("SELECT id FROM jobs"), []);
  test.subscriber(jobs).assertSettled(ack());
}

/** What holds on virtual time and on real time alike. */
export const kitLiveTests: readonly ConformanceTest[] = inEachForm(tests);
