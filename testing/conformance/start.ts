import assert from "node:assert/strict";
import { App, Broker, inbox, json, SchemaError } from "./holdfast.ts";
import { leaseService } from "./lease_service.ts";
import type { ConformanceTest } from "./test_database.ts";

/** What is verified before a subscription runs. */
export const startTests: readonly ConformanceTest[] = [
  {
    name: "a missing table is refused with the statement that would create it",
    async run(database) {
      const jobs = inbox("jobs", {
        id: "id",
        lockedUntil: "locked_until",
        payload: json<number>("payload"),
      });
      const broker = new Broker(database.connect()).include(jobs.queue().subscribe(() => {}));
      const [problem] = await problemsOf(broker);
      assert.equal(problem?.problem, "the table does not exist");
      assert.equal(problem.subscription, "jobs");
      assert.match(problem.fix, /CREATE TABLE ["`]jobs["`]/);
    },
  },
  {
    name: "every problem of every table is in one error",
    needs: "connections",
    async run(database) {
      const { app } = leaseService(database.connect(), () => {});
      await (await app.start()).stop();
      const wrong = inbox("jobs", {
        id: "id",
        attempt: "tries",
        lockedUntil: "leased_until",
        payload: json<number>("payload"),
      });
      const missing = inbox("other_jobs", {
        id: "id",
        lockedUntil: "locked_until",
        payload: json<number>("payload"),
      });
      const broker = new Broker(database.connect())
        .include(wrong.queue().subscribe(() => {}), missing.queue().subscribe(() => {}));
      const problems = await problemsOf(broker);
      assert.deepEqual(
        problems.map(({ table, column }) => [table, column]),
        [["jobs", "tries"], ["jobs", "leased_until"], ["other_jobs", undefined]],
      );
    },
  },
  {
    name: "createTables leaves a table alone that is there, with its rows",
    needs: "connections",
    async run(database) {
      const first = leaseService(database.connect(), () => {});
      await using running = await first.app.start();
      await using broker = await new Broker(database.connect())
        .createTables(first.queue.inbox).connect();
      assert(running);
      assert.equal((await broker.publish(first.queue, { name: "a" })).inserted, true);
    },
  },
];

async function problemsOf(broker: Broker): Promise<SchemaError["problems"]> {
  try {
    await new App({ name: "suite" }).withBroker(broker).start();
  } catch (error) {
    if (error instanceof SchemaError) return error.problems;
    throw error;
  }
  throw new assert.AssertionError({ message: "The app has started" });
}
