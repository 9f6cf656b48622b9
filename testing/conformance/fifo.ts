import assert from "node:assert/strict";
import { ack, retryAfter, TestApp } from "./holdfast.ts";
import type { Job } from "./lease_service.ts";
import { FIFO_TABLES, queueOf, rolesService, subscribe } from "./roles_service.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

type FifoForm = keyof typeof FIFO_TABLES;

/** What FIFO groups promise, in the forms that have them. */
interface FifoTest {
  readonly name: string;
  readonly needs?: "connections";
  readonly run: (database: TestDatabase, form: FifoForm) => Promise<void>;
}

const tests: readonly FifoTest[] = [
  {
    name: "a group is delivered one at a time in order of priority and id, groups side by side",
    async run(database, form) {
      const table = FIFO_TABLES[form];
      const spans: string[] = [];
      const handle = async ({ name }: Job): Promise<void> => {
        spans.push(`+${name}`);
        await sleep(1_000);
        spans.push(`-${name}`);
      };
      const a = subscribe(table, "a", handle);
      const b = subscribe(table, "b", handle);
      await using test = await TestApp.start(rolesService(database.connect(), table, a, b));
      await test.publish(queueOf(table, "a"), { name: "a1" });
      await test.publish(queueOf(table, "b"), { name: "b1" });
      await test.publish(queueOf(table, "a"), { name: "a3" }, { priority: 1 });
      await test.publish(queueOf(table, "a"), { name: "a2" });
      assert.deepEqual(spans, ["+a1", "+b1"]);
      await test.advance({ seconds: 5 });
      assert.deepEqual(
        spans.filter((span) => span.includes("a")),
        ["+a1", "-a1", "+a2", "-a2", "+a3", "-a3"],
      );
    },
  },
  {
    name: "a head that is not due keeps its group waiting, and no other",
    async run(database, form) {
      const table = FIFO_TABLES[form];
      const names: string[] = [];
      const handle = ({ name }: Job, { attempt }: { attempt: number | undefined }) => {
        names.push(`${name} ${attempt}`);
        return name === "a1" && attempt === 1 ? retryAfter({ minutes: 1 }) : ack();
      };
      const a = subscribe(table, "a", handle);
      const b = subscribe(table, "b", handle);
      await using test = await TestApp.start(rolesService(database.connect(), table, a, b));
      for (const name of ["a1", "a2"]) await test.publish(queueOf(table, "a"), { name });
      await test.publish(queueOf(table, "b"), { name: "b1" });
      await test.advance({ seconds: 58 });
      assert.deepEqual(names.toSorted(), ["a1 1", "b1 1"]);
      await test.advance({ seconds: 4 });
      assert.deepEqual(names.slice(2), ["a1 2", "a2 1"]);
    },
  },
  {
    name: "one of a group is in work over all processes, in order",
    needs: "connections",
    async run(database, form) {
      const table = FIFO_TABLES[form];
      let inWork = 0;
      const ids: string[] = [];
      const handle = async ({ name }: Job): Promise<void> => {
        assert.equal(++inWork, 1);
        ids.push(name);
        await sleep(50);
        inWork--;
      };
      const one = subscribe(table, "a", handle, { pollInterval: 40 });
      const two = subscribe(table, "a", handle, { pollInterval: 30 });
      await using test = await TestApp.start(rolesService(database.connect(), table, one));
      await using other = await TestApp.join(test, rolesService(database.connect(), table, two));
      // Each is due after the one before has been handled, so that either may be the first to see it.
      for (let n = 0; n < 30; n++) {
        await test.publish(queueOf(table, "a"), { name: `${n}` }, { delay: n * 110 });
      }
      await test.advance({ seconds: 10 });
      assert.deepEqual(ids, Array.from({ length: 30 }, (_, n) => `${n}`));
      assert(test.deliveries.length > 0 && other.deliveries.length > 0);
      assert([...test.deliveries, ...other.deliveries].every(({ error }) => error === undefined));
    },
  },
];

/** The tests, in both forms. */
export const fifoTests: readonly ConformanceTest[] = (["row lock", "lease"] as const)
  .flatMap((form) =>
    tests.map(({ name, needs, run }): ConformanceTest => ({
      name: `FIFO, ${form}: ${name}`,
      needs: form === "row lock" ? "row locks" : needs,
      run: (database) => run(database, form),
    }))
  );
