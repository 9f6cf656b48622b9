import assert from "node:assert/strict";
import { ack, type Driver, type Form, retry, retryAfter, TestApp } from "./holdfast.ts";
import { FULL_TABLES } from "./full_service.ts";
import { type FormTest, inEachForm } from "./in_each_form.ts";
import { queueOf, rolesService, subscribe } from "./roles_service.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

const RUNS = 20;

const tests: readonly FormTest[] = [
  {
    name: `${RUNS} runs of two queues with three workers, retries and publishes give one trace`,
    async run(database, form) {
      const traces = new Map<string, number>();
      for (let run = 0; run < RUNS; run++) {
        const trace = await traceOfRun(database, form, 7);
        traces.set(trace, (traces.get(trace) ?? 0) + 1);
      }
      assert.equal(traces.size, 1, differenceOf([...traces.keys()]));
    },
  },
  {
    name: "another seed gives another trace",
    async run(database, form) {
      const one = await traceOfRun(database, form, 1);
      assert.notEqual(await traceOfRun(database, form, 2), one);
    },
  },
];

async function traceOfRun(database: TestDatabase, form: Form, seed: number): Promise<string> {
  const table = FULL_TABLES[form];
  const jobs = subscribe(table, "jobs", async ({ name }, delivery) => {
    await sleep(100 * name.length);
    if (delivery.attempt === 1 && name !== "a") throw new Error("No luck");
    if (delivery.attempt === 2 && name === "ccc") return retryAfter({ minutes: 5 });
    await delivery.publish(queueOf(table, "replies"), { name: `${name}!` });
    return ack();
  }, { workers: 3, pollInterval: 500 });
  const replies = subscribe(table, "replies", async (_, { attempt }) => {
    await sleep(50);
    return attempt === 1 ? retry() : ack();
  }, { workers: 3, pollInterval: 700 });
  const driver = database.connect();
  await dropTable(driver);
  const app = rolesService(driver, table, jobs, replies);
  await using test = await TestApp.start(app, { now: Date.UTC(2030, 0, 1), seed });
  for (const name of ["a", "bb", "ccc", "dddd", "eeeee"]) {
    await test.publish(queueOf(table, "jobs"), { name });
  }
  await test.drain();
  test.subscriber(replies).assertCalled(10);
  return String(test.trace);
}

/** So that ids start anew. What is in memory is gone already. */
async function dropTable(driver: Driver): Promise<void> {
  await driver.open();
  const session = await driver.session();
  await session.query("DROP TABLE IF EXISTS jobs");
  await session.release();
  await driver.close();
}

/** The first lines in which two of them differ. */
function differenceOf(traces: readonly string[]): string {
  const [one = [], other = []] = traces.map((trace) => trace.split("\n"));
  const index = one.findIndex((line, index) => line !== other[index]);
  const [from, to] = [Math.max(0, index - 5), index + 5];
  return `${traces.length} traces:\n${one.slice(from, to).join("\n")}\nand\n` +
    other.slice(from, to).join("\n");
}

/** What makes runs of a test alike. */
export const kitDeterminismTests: readonly ConformanceTest[] = inEachForm(tests);
