import assert from "node:assert/strict";
import {
  ack,
  App,
  Broker,
  deadLetter,
  type Form,
  inbox,
  json,
  retry,
  retryAfter,
  TestApp,
  text,
  TimeoutError,
} from "./holdfast.ts";
import { FULL_MARKED_TABLES, FULL_TABLES } from "./full_service.ts";
import { type FormTest, inEachForm } from "./in_each_form.ts";
import { queueOf, rolesService, subscribe } from "./roles_service.ts";
import type { Job } from "./lease_service.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest } from "./test_database.ts";

/** What becomes of messages that fail. */
const tests: readonly FormTest[] = [
  {
    name: "an error is tried again until its attempts are spent, and then dead-lettered",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const options = { maxAttempts: 3, deadLetter: "dead" };
      const jobs = subscribe(table, "jobs", ({ name }) => {
        throw new Error(`No luck with ${name}`);
      }, options);
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      await test.publish(queueOf(table, "jobs"), { name: "a" }, { uniqueKey: "a" });
      await test.advance({ seconds: 30 });
      test.subscriber(jobs).assertCalled(3);
      assert.deepEqual(
        test.deliveries.map(({ attempt, outcome }) => [attempt, outcome?.kind]),
        [[1, "retry"], [2, "retry"], [3, "deadLetter"]],
      );
      const [row] = await rows(test);
      assert.equal(row?.queue, "dead");
      assert.equal(Number(row?.attempt), 1);
      assert.equal(row?.last_error, "No luck with a");
      assert.equal(row?.unique_key, null, "the key is free for a new message");
    },
  },
  {
    name: "retry and retryAfter, too, come to an end when the attempts are spent",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const options = { maxAttempts: 2, deadLetter: "dead" };
      const jobs = subscribe(
        table,
        "jobs",
        ({ name }) => name === "a" ? retry() : retryAfter(1_000, "Not yet"),
        options,
      );
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      for (const name of ["a", "b"]) await test.publish(queueOf(table, "jobs"), { name });
      await test.advance({ seconds: 10 });
      test.subscriber(jobs).assertCalled(4);
      const found = await rows(test);
      assert.deepEqual(found.map(({ queue }) => queue), ["dead", "dead"]);
      assert.deepEqual(found.map(({ last_error: e }) => e), ["retry() was returned", "Not yet"]);
    },
  },
  {
    name: "without a dead letter a message whose attempts are spent is dropped",
    async run(database, form) {
      const table = FULL_MARKED_TABLES[form];
      const jobs = subscribe(table, "jobs", () => {
        throw new Error("No luck");
      }, { maxAttempts: 2 });
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      await test.advance({ seconds: 30 });
      test.subscriber(jobs).assertCalled(2);
      const [row] = await rows(test);
      assert.notEqual(row?.done, null);
      assert.equal(row?.last_error, "No luck");
    },
  },
  {
    name: "an error can drop or dead-letter its message at once",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const fail = ({ name }: Job) => {
        throw new Error(name);
      };
      const dropped = subscribe(table, "dropped", fail, { onFailure: { error: "drop" } });
      const buried = subscribe(table, "buried", fail, {
        onFailure: { error: "dead-letter" },
        deadLetter: "dead",
      });
      await using test = await TestApp.start(
        rolesService(database.connect(), table, dropped, buried),
      );
      await test.publish(queueOf(table, "dropped"), { name: "a" });
      await test.publish(queueOf(table, "buried"), { name: "b" });
      await test.advance({ seconds: 3 });
      assert.equal(test.deliveries.length, 2);
      assert.deepEqual((await rows(test)).map(({ queue, last_error: e }) => [queue, e]), [
        ["dead", "b"],
      ]);
    },
  },
  {
    name: "an error can stop the app, and its message is left as it was",
    needs: "connections",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const jobs = subscribe(table, "jobs", () => {
        throw new Error("Stop");
      }, { onFailure: { error: "fail-fast" } });
      const app = rolesService(database.connect(), table, jobs);
      const running = await app.start();
      await app.publish(queueOf(table, "jobs"), { name: "a" });
      await assert.rejects(running.finished, /Stop/);
      await using broker = await new Broker(database.connect()).createTables(table).connect();
      const session = await broker.driver.session();
      const { rows: [row] } = await session.query("SELECT attempt FROM jobs");
      await session.release();
      assert.equal(Number(row?.attempt), 1);
    },
  },
  {
    name: "a message that cannot be decoded is kept, and goes to the dead letter if there is one",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const options = { maxAttempts: 2, backoff: { first: 100, cap: 100 } };
      const kept = subscribe(table, "kept", () => ack(), options);
      const moved = subscribe(table, "moved", () => ack(), { ...options, deadLetter: "dead" });
      await using test = await TestApp.start(rolesService(database.connect(), table, kept, moved));
      for (const queue of ["kept", "moved"]) {
        await test.query(`INSERT INTO jobs (queue, payload) VALUES ('${queue}', 'no json')`);
      }
      await test.advance({ seconds: 20 });
      const queues = (await rows(test)).map(({ queue }) => queue);
      assert.deepEqual(queues, ["kept", "dead"]);
      assert(test.deliveries.filter(({ queue }) => queue === "kept").length > 2);
      for (const { last_error: error } of await rows(test)) {
        assert.match(String(error), /Cannot decode "jobs"."payload" of message \d+/);
      }
    },
  },
  {
    name: "whatever is thrown the row is settled, and the error kept as far as it can be",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const thrown: readonly unknown[] = [
        new Error("a\0b\uD800c"),
        new Error("x".repeat(1_000_000)),
        "text",
        Symbol("symbol"),
        undefined,
        {
          toString() {
            throw new Error("Not even that");
          },
        },
        Object.assign(new Error("odd"), { message: 7 }),
      ];
      const jobs = subscribe(table, "jobs", ({ name }) => {
        throw thrown[Number(name)];
      }, { backoff: { first: 3_600_000 } });
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      for (const index of thrown.keys()) {
        await test.publish(queueOf(table, "jobs"), { name: `${index}` });
      }
      test.subscriber(jobs).assertCalled(thrown.length);
      assert(test.deliveries.every(({ settled }) => settled));
      const errors = (await rows(test)).map(({ last_error: error }) => String(error));
      assert.equal(errors[0], "ab\uFFFDc");
      assert.equal(errors[1], "x".repeat(10_000));
      assert.match(errors[2]!, /threw "text"/);
      assert.match(errors[3]!, /threw Symbol\(symbol\)/);
      assert.match(errors[5]!, /threw something that cannot be described/);
    },
  },
  {
    name: "a handler that takes longer than its timeout is aborted, and has failed",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const reasons: unknown[] = [];
      const jobs = subscribe(table, "jobs", async (_, { signal, attempt }) => {
        if (attempt === 2) return ack();
        while (!signal.aborted) await sleep(100);
        reasons.push(signal.reason);
      }, { timeout: { minutes: 2 }, backoff: { first: 5_000 } });
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      await test.advance({ seconds: 119 });
      assert.equal(reasons.length, 0);
      await test.advance({ seconds: 10 });
      assert(reasons[0] instanceof TimeoutError);
      assert(test.deliveries[0]?.error instanceof TimeoutError);
      test.subscriber(jobs).assertCalled(2).assertSettled(ack());
    },
  },
  {
    name: "the delay after a failure stays within its backoff",
    async run(database, form) {
      const table = FULL_TABLES[form];
      const jobs = subscribe(table, "jobs", () => {
        throw new Error("No luck");
      }, { backoff: { first: { seconds: 2 }, cap: { seconds: 4 } }, pollInterval: 100 });
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      await test.advance({ minutes: 2 });
      // Drawn evenly from at most 4 s: two seconds on the average, and a poll.
      assert(test.deliveries.length > 30 && test.deliveries.length < 120);
      const starts = test.deliveries.map(({ startedAt }) => startedAt);
      assert(starts.every((start, n) => n === 0 || start - starts[n - 1]! < 4_300));
    },
  },
  {
    name: "an end that the database refuses is a failure: told at once, and nobody waits for it",
    async run(database, form) {
      const lockedUntil = form === "lease" ? { lockedUntil: "locked_until" } : {};
      const roles = {
        id: "id",
        group: "queue",
        retryAfter: "due",
        attempt: "attempt",
        lastError: "last_error",
        payload: json<Job>("payload"),
        ...lockedUntil,
      };
      const table = inbox("jobs", roles as never, {
        statements: { ack: "NONSENSE :id" },
        ...(form === "advisory lock" ? { advisoryLock: "jobs-{id}" } : {}),
      } as never);
      const jobs = table.queue("jobs").subscribe({
        maxAttempts: 3,
        deadLetter: "dead",
        backoff: { first: 1_000, cap: 1_000 },
        pollInterval: 500,
      } as never, (({ name }: Job) => name === "good" ? deadLetter("Fine") : ack()) as never);
      const broker = new Broker(database.connect()).createTables(table as never);
      broker.include(jobs as never);
      await using test = await TestApp.start(new App({ name: "suite" }).withBroker(broker));
      for (const name of ["bad", "good"]) {
        await test.publish(table.queue("jobs") as never, { name } as never);
      }
      await test.advance({ seconds: 2 });
      assert(test.deliveries.some(({ outcome }) => outcome?.kind === "deadLetter"), "the good one");
      await test.advance({ seconds: 20 });
      const bad = test.deliveries.filter(({ id }) => String(id) === "1");
      assert.deepEqual(bad.map(({ settled }) => settled), [false, false, false, true]);
      assert.equal(bad.at(-1)?.message, undefined, "no handler has seen it a fourth time");
      const found = await rows(test);
      assert.deepEqual(found.map(({ queue }) => queue), ["dead", "dead"]);
      assert.match(String(found[0]?.last_error), /NONSENSE|syntax/i);
      assert.equal(found[1]?.last_error, "Fine");
    },
  },
  {
    name: "a message is dead-lettered to another table, by the names of its columns",
    async run(database, form) {
      for (const table of [FULL_TABLES[form], FULL_MARKED_TABLES[form]]) {
        await deadLetterElsewhere(database.connect(), table, form);
      }
    },
  },
  {
    name: "a message whose handler has killed its process too often is dead-lettered unseen",
    forms: ["lease", "advisory lock"],
    async run(database, form) {
      const table = FULL_TABLES[form];
      const jobs = subscribe(table, "jobs", () => ack(), { maxAttempts: 3, deadLetter: "dead" });
      await using test = await TestApp.start(rolesService(database.connect(), table, jobs));
      // Attempts 3 and 4 have begun, the latter as the last that is allowed.
      for (const attempt of [3, 4]) {
        await test.query(
          `INSERT INTO jobs (queue, payload, attempt) VALUES ('jobs', '{"name":"a"}', ${attempt})`,
        );
      }
      await test.advance({ seconds: 3 });
      assert.deepEqual(test.deliveries.map(({ outcome }) => outcome?.kind), ["ack", "deadLetter"]);
      assert.deepEqual(test.subscriber(jobs).received(), [{ name: "a" }]);
      assert.deepEqual((await rows(test)).map(({ queue }) => queue), ["dead"]);
    },
  },
];

async function deadLetterElsewhere(
  driver: ReturnType<Parameters<FormTest["run"]>[0]["connect"]>,
  table: (typeof FULL_TABLES)[Form],
  form: Form,
): Promise<void> {
  let made = 0;
  const dead = inbox("dead_jobs", {
    id: { column: "dead_id", generate: () => `dead-${++made}` },
    payload: text("payload"),
    group: "kind",
    attempt: "tries",
    retryAfter: "visible_at",
    lastError: "why",
    headers: "headers",
    uniqueKey: "unique_key",
    lockedUntil: "leased_until",
  });
  const jobs = subscribe(table, "jobs", () => deadLetter("No use"), {
    deadLetter: dead.queue("given up"),
  });
  const seen: unknown[] = [];
  const graves = dead.queue("given up").subscribe((message, { id, attempt, headers }) => {
    seen.push([id, attempt, message, headers]);
    return ack();
  });
  const broker = new Broker(driver).createTables(table, dead).include(jobs, graves);
  const app = new App({ name: "suite" }).withBroker(broker);
  await using test = await TestApp.start(app);
  await test.query("DELETE FROM dead_jobs");
  await test.publish(queueOf(table, "jobs"), { name: "a" }, {
    headers: { from: "a test" },
    uniqueKey: "a",
  });
  await test.advance({ seconds: 3 });
  assert.deepEqual(seen, [["dead-1", 1, '{"name":"a"}', { from: "a test" }]]);
  const left = await rows(test);
  const isMarked = table === FULL_MARKED_TABLES[form];
  assert.deepEqual(left.map(({ done }) => done !== null), isMarked ? [true] : []);
  await test.query("DROP TABLE jobs");
  await test.query("DROP TABLE dead_jobs");
}

/** A dead letter that cannot take the rows is refused at start. */
const startTest: ConformanceTest = {
  name: "a dead letter with a column that nothing fills is refused at start",
  needs: "connections",
  async run(database) {
    const { lease: table } = FULL_TABLES;
    const dead = inbox("dead_jobs", {
      id: "id",
      payload: json<Job>("payload"),
      lockedUntil: "locked_until",
    });
    const jobs = subscribe(table, "jobs", () => ack(), { deadLetter: dead });
    const broker = new Broker(database.connect()).createTables(table, dead);
    await using test = await TestApp.start(new App({ name: "suite" }).withBroker(broker));
    await test.query("DROP TABLE dead_jobs");
    const [create] = dead.ddl(nameOf(broker.driver.name)).split(";\n");
    await test.query(create!.replace(/\n\)/, `,\n  reviewer VARCHAR(20) NOT NULL\n)`));
    const other = new Broker(database.connect()).include(jobs);
    const app = new App({ name: "other" }).withBroker(other);
    await assert.rejects(
      app.start().then((running) => running.stop()),
      /"dead_jobs"."reviewer" .*nothing for this column/,
    );
  },
};

function nameOf(driver: string): "postgres" | "mysql" | "sqlite" {
  return driver.toLowerCase() as "postgres" | "mysql" | "sqlite";
}

async function rows(test: TestApp) {
  return await test.query("SELECT * FROM jobs ORDER BY id");
}

/** What becomes of messages that fail, in each form. */
export const failureTests: readonly ConformanceTest[] = [...inEachForm(tests), startTest];
