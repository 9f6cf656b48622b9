import assert from "node:assert/strict";
import {
  ack,
  App,
  Broker,
  DeclarationError,
  drop,
  inbox,
  json,
  type OwnStatements,
  retry,
  TestApp,
} from "./holdfast.ts";
import type { Job } from "./lease_service.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

const ROLES = { id: "id", attempt: "attempt", payload: json<Job>("payload") } as const;

/** Only messages of a VIP are claimed; what is done is marked by a word, and what is dropped too. */
const statements: OwnStatements = {
  fetch: `SELECT id, attempt, '{"name":"fetched"}' AS payload FROM jobs WHERE id = :id`,
  ack: `UPDATE jobs SET state = 'done' WHERE id = :id AND attempt = :attempt`,
  drop: `UPDATE jobs SET state = :error WHERE id = :id AND attempt = :attempt`,
  retry: `UPDATE jobs SET state = 'again', attempt = attempt + 1 WHERE id = :id`,
  publish: `INSERT INTO jobs (payload, state) VALUES (:payload, 'new')`,
};

function claimSql(database: TestDatabase, isLease: boolean, isLocked: boolean): string {
  const free = isLease ? " AND (locked_until IS NULL OR locked_until <= :now)" : "";
  const lock = isLocked && database.locksRows ? " FOR UPDATE SKIP LOCKED" : "";
  return `SELECT * FROM jobs /* :not a value */ WHERE state IN ('new', 'again')${free} ` +
    `ORDER BY id LIMIT :limit${lock}`;
}

async function run(database: TestDatabase, form: "row lock" | "lease" | "advisory lock") {
  const isLease = form === "lease";
  const claim = claimSql(database, isLease, form !== "advisory lock");
  const returning = database.returnsIds ? " RETURNING id" : "";
  const own: OwnStatements = {
    ...statements,
    claim,
    publish: statements.publish + returning,
    // A lease is given back with the row; an advisory claim has counted the attempt.
    ...(isLease
      ? {
        ack: `UPDATE jobs SET state = 'done', locked_until = NULL WHERE id = :id ` +
          `AND attempt = :attempt AND locked_until <= :latest`,
        retry: `UPDATE jobs SET state = 'again', locked_until = NULL WHERE id = :id ` +
          `AND attempt = :attempt`,
      }
      : form === "advisory lock"
      ? { retry: `UPDATE jobs SET state = 'again' WHERE id = :id AND attempt = :attempt` }
      : {}),
  };
  const table = isLease
    ? inbox("jobs", { ...ROLES, lockedUntil: "locked_until" }, { statements: own })
    : form === "row lock"
    ? inbox("jobs", ROLES, { statements: own })
    : inbox("jobs", ROLES, { statements: own, advisoryLock: "jobs-{id}" });
  const seen: unknown[] = [];
  const jobs = table.queue().subscribe(({ name }, { id, attempt }) => {
    seen.push([Number(id), attempt, name]);
    if (attempt === 1) return retry();
    return Number(id) === 1 ? ack() : drop("Not wanted");
  });
  const driver = database.connect();
  const creator = new Broker(driver).createTables(table);
  await using broker = await creator.connect();
  const session = await broker.driver.session();
  await session.query("ALTER TABLE jobs ADD COLUMN state VARCHAR(20)");
  await session.query(`INSERT INTO jobs (payload, state) VALUES ('{"name":"a"}', 'new')`);
  await session.release();
  await broker.close();
  const app = new App({ name: "suite" }).withBroker(new Broker(driver).include(jobs));
  await using test = await TestApp.start(app);
  const { id } = await test.publish(table.queue(), { name: "b" });
  await test.advance({ seconds: 5 });
  assert.equal(Number(id), 2);
  assert.deepEqual(seen.toSorted(), [
    [1, 1, "fetched"],
    [1, 2, "fetched"],
    [2, 1, "fetched"],
    [2, 2, "fetched"],
  ]);
  const rows = await test.query("SELECT state FROM jobs ORDER BY id");
  assert.deepEqual(rows.map(({ state }) => state), ["done", "Not wanted"]);
  assert(test.deliveries.every(({ settled }) => settled));
}

/** What a service's own statements promise. */
export const byHandTests: readonly ConformanceTest[] = [
  ...(["row lock", "lease", "advisory lock"] as const).map((form): ConformanceTest => ({
    name: `${form}: a service's own statements are run in place of those that are built in`,
    needs: form === "row lock" ? "row locks" : "connections",
    run: (database) => run(database, form),
  })),
  {
    name: "a row that a service's own claim finds twice is handled once",
    async run(database) {
      const table = inbox("jobs", { ...ROLES, lockedUntil: "locked_until" }, {
        statements: {
          claim: "SELECT j.id FROM jobs AS j JOIN (SELECT 1 AS n UNION ALL SELECT 2) AS two " +
            "ON 1 = 1 WHERE j.locked_until IS NULL ORDER BY j.id LIMIT :limit",
        },
      });
      const jobs = table.queue().subscribe({ workers: 4 }, () => sleep(1_000));
      const broker = new Broker(database.connect()).createTables(table).include(jobs);
      await using test = await TestApp.start(new App({ name: "suite" }).withBroker(broker));
      for (const name of ["a", "b"]) await test.publish(table.queue(), { name });
      await test.advance({ seconds: 5 });
      test.subscriber(jobs).assertCalled(2);
    },
  },
  {
    name: "a service's own statements that return too little are refused by name",
    async run(database) {
      const table = inbox("jobs", { ...ROLES, lockedUntil: "locked_until" }, {
        statements: {
          claim: "SELECT attempt FROM jobs LIMIT :limit",
          publish: "INSERT INTO jobs (payload) VALUES (:payload)",
        },
      });
      const jobs = table.queue().subscribe(() => ack());
      const broker = new Broker(database.connect()).createTables(table).include(jobs);
      await using test = await TestApp.start(new App({ name: "suite" }).withBroker(broker));
      if (database.returnsIds) {
        await assert.rejects(
          test.publish(table.queue(), { name: "a" }),
          /does not return the id: end it with RETURNING id/,
        );
        assert.deepEqual(await test.query("SELECT id FROM jobs"), []);
      } else await test.publish(table.queue(), { name: "a" });
    },
  },
  {
    name: "a lock that other code takes is shared: neither works while the other does",
    needs: "a server",
    async run(database) {
      const table = inbox("jobs", ROLES, {
        advisoryLock: "jobs-{id}",
        statements: database.sharedLock!,
      });
      let isWorking = false;
      const jobs = table.queue().subscribe({ pollInterval: 50 }, async () => {
        isWorking = true;
        await sleep(300);
        isWorking = false;
        return ack();
      });
      const broker = new Broker(database.connect()).createTables(table).include(jobs);
      await using test = await TestApp.startLive(new App({ name: "suite" }).withBroker(broker));
      const other = database.connect();
      await other.open();
      const session = await other.session();
      await session.begin();
      const ask = async (sql: string): Promise<boolean> => {
        const own = database.sharedLock!;
        assert(sql === own.lock || sql === own.unlock);
        const { rows: [row] } = await session.query(sql.replace(":key", "'jobs-1'"));
        return [1, 1n, "t"].includes(Object.values(row!)[0] as number);
      };
      const { lock, unlock } = database.sharedLock!;
      assert(await ask(lock!));
      await test.publish(table.queue(), { name: "a" });
      await test.advance({ milliseconds: 300 });
      test.subscriber(jobs).assertNotCalled();
      assert(await ask(unlock!));
      while (!isWorking) await test.advance({ milliseconds: 10 });
      assert(!await ask(lock!), "its handler works");
      await test.settled();
      await test.advance({ milliseconds: 100 });
      assert(await ask(lock!), "it has been given back");
      assert(await ask(unlock!));
      await session.release();
      await other.close();
      test.subscriber(jobs).assertCalledOnce();
    },
  },
  {
    name: "statements that could not run are refused with what there is",
    run() {
      const refused = (own: OwnStatements, pattern: RegExp): void => {
        assert.throws(() => inbox("jobs", ROLES, { statements: own }), (error: unknown) => {
          assert(error instanceof DeclarationError);
          assert.match(error.message, pattern);
          return true;
        });
      };
      refused({ ack: "DELETE FROM jobs WHERE id = :key" }, /ack has no value :key; it has :id/);
      refused({ ack: "" }, /ack is ""; give SQL/);
      refused({ lock: "SELECT :key" }, /lock and unlock go together/);
      refused({ lock: "SELECT 1", unlock: "SELECT 1" }, /lock needs the advisory lock form/);
      refused({ renew: "SELECT 1" }, /renew needs the lease form/);
      refused({ nack: "SELECT 1" } as never, /nack is not an option/);
      inbox("jobs", ROLES, { statements: { ack: "SELECT ':x', id::text -- :y\n/* :z */" } });
      return Promise.resolve();
    },
  },
];
