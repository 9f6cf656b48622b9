import assert from "node:assert/strict";
import {
  ack,
  type Driver,
  type Form,
  retryAfter,
  type SubscribeOptions,
  type Subscription,
  TestApp,
} from "./holdfast.ts";
import { countStatements } from "./count_statements.ts";
import { FULL_TABLES, type FullInbox } from "./full_service.ts";
import { type FormTest, inEachForm } from "./in_each_form.ts";
import type { Job, JobHandler } from "./lease_service.ts";
import { FIFO_TABLES, queueOf, type RolesInbox, rolesService, subscribe } from "./roles_service.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

const SECOND = 1_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const INTERVALS: readonly number[] = [SECOND, 60 * SECOND];

/** Who writes a row of the table behind the app's back. */
interface Writer {
  readonly name: string;
  readonly needs?: FormTest["needs"];
  /** Writes it by SQL, or publishes it to be due at this time. */
  readonly write: (stage: Stage, due: number | undefined) => Promise<void>;
}

/** A service whose loop has found nothing for a while. */
interface Stage {
  readonly database: TestDatabase;
  readonly driver: Driver;
  readonly table: FullInbox;
  readonly test: TestApp;
  /** Runs in the handler of another queue. */
  work: JobHandler;
}

const WRITERS: readonly Writer[] = [
  {
    name: "TestApp.query",
    write: async ({ database, test }, due) => void await test.query(insert(database, due)),
  },
  {
    name: "the test's own client",
    async write({ database, driver }, due) {
      const own = database.address === undefined ? driver : database.connect();
      if (own !== driver) await own.open();
      const session = await own.session();
      await session.query(insert(database, due));
      await session.release();
      if (own !== driver) await own.close();
    },
  },
  {
    name: "a handler's SQL",
    async write(stage, due) {
      stage.work = async (_, delivery) => {
        await stage.database.write(delivery as never, insert(stage.database, due));
        return ack();
      };
      await stage.test.publish(queueOf(stage.table, "work"), { name: "work" });
    },
  },
  {
    name: "a handler's publish in its transaction",
    async write(stage, due) {
      stage.work = async (_, delivery) => {
        await delivery.publish(queueOf(stage.table, "jobs"), { name: "a" }, at(due));
        return ack();
      };
      await stage.test.publish(queueOf(stage.table, "work"), { name: "work" });
    },
  },
  {
    name: "a joined app",
    async write({ database, driver, table, test }, due) {
      const own = database.address === undefined ? driver : database.connect();
      await using other = await TestApp.join(test, rolesService(own, table));
      await other.publish(queueOf(table, "jobs"), { name: "a" }, at(due));
    },
  },
  {
    name: "a timer of a handler that is still at work",
    async write(stage, due) {
      stage.work = async (_, delivery) => {
        await sleep(10);
        await stage.database.write(delivery as never, insert(stage.database, due));
        await sleep(10);
        return ack();
      };
      await stage.test.publish(queueOf(stage.table, "work"), { name: "work" });
    },
  },
];

/** A row that is due at this time, or at once. */
function insert({ sql }: TestDatabase, due: number | undefined): string {
  const columns = "queue, attempt, payload, priority";
  const values = `'jobs', 1, '{"name":"a"}', 0`;
  if (due === undefined) return `INSERT INTO jobs (${columns}) VALUES (${values})`;
  return `INSERT INTO jobs (${columns}, due) VALUES (${values}, ${sql.time(due)})`;
}

function at(due: number | undefined): { readonly at?: Date } {
  return due === undefined ? {} : { at: new Date(due) };
}

async function startStage(
  database: TestDatabase,
  form: Form,
  pollInterval: number,
): Promise<Stage & { readonly jobs: Subscription<Job> }> {
  const table = FULL_TABLES[form];
  const jobs = subscribe(table, "jobs", () => ack(), { pollInterval });
  const transactional: SubscribeOptions<Form, "jobs"> & { readonly transactional: true } = {
    transactional: true,
    pollInterval,
  };
  const work = table.queue("work").subscribe(
    transactional,
    (job, delivery) => stage.work(job, delivery as never),
  ) as Subscription<Job>;
  const driver = database.connect();
  const test = await TestApp.start(rolesService(driver, table, jobs, work));
  const stage: Stage & { readonly jobs: Subscription<Job> } = {
    database,
    driver,
    table,
    test,
    jobs,
    work: () => {},
  };
  return stage;
}

const found: readonly FormTest[] = WRITERS.map(({ name, needs, write }): FormTest => ({
  name: `a row that ${name} has written is claimed by the poll after it is due`,
  needs,
  async run(database, form) {
    for (const pollInterval of INTERVALS) {
      for (const delay of [undefined, 5 * HOUR]) {
        const stage = await startStage(database, form, pollInterval);
        await using test = stage.test;
        await test.advance(DAY);
        const due = test.time.now + (delay ?? 0);
        await write(stage, delay === undefined ? undefined : due);
        await test.advance((delay ?? 0) + pollInterval + SECOND);
        const [delivery, ...more] = test.deliveries.filter(({ queue }) => queue === "jobs");
        assert.equal(more.length, 0);
        assert(delivery !== undefined, `it is not claimed\n${test.trace}`);
        assertWithin(delivery.startedAt - due, 0, pollInterval + 20);
        test.subscriber(stage.jobs).assertCalledOnce().assertReceived({ name: "a" });
        assert.deepEqual(await test.query("SELECT id FROM jobs"), []);
      }
    }
  },
}));

const waits: readonly FormTest[] = INTERVALS.flatMap((pollInterval): readonly FormTest[] => [
  {
    name: `with polls of ${pollInterval / 1000} s a wait of three days costs few statements`,
    async run(database, form) {
      const table = FULL_TABLES[form];
      const jobs = subscribe(
        table,
        "jobs",
        (_, { attempt }) => attempt === 1 ? retryAfter({ days: 3 }) : ack(),
        { pollInterval },
      );
      const driver = database.connect();
      const statements = countStatements(driver);
      await using test = await TestApp.start(rolesService(driver, table, jobs));
      await test.publish(queueOf(table, "jobs"), { name: "a" });
      const before = statements.count;
      await test.advance({ days: 4 });
      test.subscriber(jobs).assertCalled(2).assertSettled(ack());
      const [first, second] = test.deliveries;
      assertWithin(second!.startedAt - first!.startedAt, 3 * DAY, 3 * DAY + pollInterval);
      assert(statements.count > before);
      assertWithin(statements.count - before, 1, 40);
    },
  },
  {
    name: `with polls of ${pollInterval / 1000} s the rows of a joined app that is at work for a ` +
      `day are looked for seldom, and claimed at once when it gives them back`,
    async run(database, form) {
      const table = FULL_TABLES[form];
      const slow = subscribe(table, "jobs", async (_, { attempt }) => {
        if (attempt! > 1) return ack();
        await sleep(DAY);
        return retryAfter(0);
      }, { pollInterval });
      const quick = subscribe(table, "jobs", () => ack(), { pollInterval });
      const own = database.connect();
      await using holder = await TestApp.start(rolesService(own, table, slow));
      await holder.publish(queueOf(table, "jobs"), { name: "a" });
      const driver = database.address === undefined ? own : database.connect();
      const statements = own === driver ? undefined : countStatements(driver);
      await using test = await TestApp.join(holder, rolesService(driver, table, quick));
      const before = statements?.count ?? 0;
      await test.advance(DAY - HOUR);
      // A lease is renewed every half minute, and each time the idle loop may look.
      const most = form === "lease" ? 3 * DAY / 20_000 : 200;
      assertWithin((statements?.count ?? 0) - before, 0, most);
      await test.advance(HOUR + pollInterval + SECOND);
      const again = [...holder.deliveries, ...test.deliveries].filter(({ attempt }) =>
        attempt === 2
      );
      assert.equal(again.length, 1, `${holder.trace}\n${test.trace}`);
      assert.deepEqual(await test.query("SELECT id FROM jobs"), []);
    },
  },
  {
    name: `with polls of ${pollInterval / 1000} s a FIFO head that waits for days keeps only its ` +
      `group back`,
    forms: ["lease", "row lock"],
    async run(database, form) {
      const table = FIFO_TABLES[form as "lease" | "row lock"];
      const order: string[] = [];
      const handle: JobHandler = ({ name }, { attempt }) => {
        order.push(name);
        return name === "head" && attempt! < 4 ? retryAfter({ days: 1 }) : ack();
      };
      const jobs = ["one", "two"].map((queue) => subscribe(table, queue, handle, { pollInterval }));
      const driver = database.connect();
      const statements = countStatements(driver);
      await using test = await TestApp.start(rolesService(driver, table, ...jobs));
      await publishTo(test, table, "one", "head");
      await publishTo(test, table, "one", "next");
      await test.advance(DAY / 2);
      await publishTo(test, table, "two", "other");
      assert.deepEqual(order, ["head", "other"]);
      const before = statements.count;
      await test.advance(4 * DAY);
      assert.deepEqual(order, ["head", "other", "head", "head", "head", "next"]);
      const last = test.deliveries.slice(-2);
      assertWithin(last[1]!.startedAt - last[0]!.endedAt!, 0, pollInterval);
      assertWithin(statements.count - before, 1, 400);
    },
  },
]);

const foreignHolder: ConformanceTest = {
  name: "a row that the test's own client holds for a day is claimed when it lets go",
  needs: "row locks",
  async run(database) {
    for (const pollInterval of INTERVALS) {
      const table = FULL_TABLES["row lock"];
      const jobs = subscribe(table, "jobs", () => ack(), { pollInterval });
      const driver = database.connect();
      const statements = countStatements(driver);
      await using test = await TestApp.start(rolesService(driver, table, jobs));
      const own = database.connect();
      await own.open();
      const session = await own.session();
      try {
        await test.advance(HOUR);
        await session.query(insert(database, undefined));
        await session.begin();
        await session.query("SELECT id FROM jobs FOR UPDATE");
        const before = statements.count;
        await test.advance(DAY);
        test.subscriber(jobs).assertNotCalled();
        assertWithin(statements.count - before, 1, 150);
        await session.rollback();
        await test.advance(pollInterval + SECOND);
        test.subscriber(jobs).assertCalledOnce().assertSettled(ack());
      } finally {
        await session.release();
        await own.close();
      }
    }
  },
};

async function publishTo(
  test: TestApp,
  table: RolesInbox,
  queue: string,
  name: string,
): Promise<void> {
  await test.publish(queueOf(table, queue), { name });
}

function assertWithin(actual: number, least: number, most: number): void {
  assert(actual >= least && actual <= most, `${actual}, not ${least} to ${most}`);
}

/** What leaving out idle polls must not change, and what it saves. */
export const kitIdlePollTests: readonly ConformanceTest[] = [
  ...inEachForm([...found, ...waits]),
  foreignHolder,
];
