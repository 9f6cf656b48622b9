import assert from "node:assert/strict";
import { now } from "../../src/clock.ts";
import { LeaseForm } from "../../src/claim/lease.ts";
import type { Settlement } from "../../src/claim/claim_form.ts";
import type { LeaseClaim } from "../../src/claim/lease_claim.ts";
import { checkTables } from "../../src/check/check_tables.ts";
import { createTables } from "../../src/check/create_tables.ts";
import { Pool } from "../../src/pool.ts";
import { databaseNow } from "../../src/clock.ts";
import { PRODUCTION } from "../../src/runtime.ts";
import { type AnyInbox, LeaseLostError } from "./holdfast.ts";
import { countedJobs, uncountedJobs } from "./lease_service.ts";
import { MARKED_TABLES, ROLES_TABLES } from "./roles_service.ts";
import { sleep } from "./sleep.ts";
import type { ConformanceTest, TestDatabase } from "./test_database.ts";

/** That a token never proves the ownership of a later claim, whoever made it and when. */
export const leaseTokenTests: readonly ConformanceTest[] = [
  ...[true, false].map((counted): ConformanceTest => ({
    name: `a released row's old token is void, ${counted ? "with" : "without"} attempts, ` +
      `also if the same process claims it again at once`,
    async run(database) {
      await using form = await openForm(database, counted);
      await form.insert();
      const [first] = await form.claim(1);
      const old = first!.token;
      await first!.release();
      const second = await form.claimSoon();
      assert.equal(second.attempt, counted ? 1 : undefined); // given back
      assert(second.expiry > old.expiry);
      for (const kind of ["remove", "free", "release"] as const) {
        assert.equal(await form.write(old, { kind, acked: true }), false);
      }
      assert.equal(await form.write(old, { kind: "delay", delay: 1 }), false);
      await second.settle({ kind: "remove", acked: true });
    },
  })),
  ...[true, false].map((counted): ConformanceTest => ({
    name: `a freed row's old token is void ${counted ? "with" : "without"} attempts`,
    async run(database) {
      await using form = await openForm(database, counted);
      await form.insert();
      const [first] = await form.claim(1);
      const old = first!.token;
      await first!.settle({ kind: "free" });
      const second = await form.claimSoon();
      assert.equal(await form.write(old, { kind: "remove", acked: true }), false);
      await second.settle({ kind: "remove", acked: true });
    },
  })),
  ...[true, false].map((marked): ConformanceTest => ({
    name: `every late settle changes nothing, also if the row was claimed again at once, where ` +
      `${marked ? "done rows are marked" : "done rows are deleted"}`,
    async run(database) {
      const table = (marked ? MARKED_TABLES : ROLES_TABLES).lease;
      await using form = await openForm(database, true, table);
      await form.query(`INSERT INTO jobs (queue, payload) VALUES ('jobs', '{"name":"a"}')`);
      const [first] = await form.claim(1);
      const old = first!.token;
      await first!.settle({ kind: "free" });
      const second = await form.claimSoon();
      const late: readonly Settlement[] = [
        { kind: "remove", acked: true },
        { kind: "free" },
        { kind: "interrupt" },
        { kind: "delay", delay: 60_000 },
        { kind: "bury" },
        { kind: "release" },
      ];
      for (const ending of late) assert.equal(await form.write(old, ending), false, ending.kind);
      for (const ending of late) {
        const together = [form.write(old, ending), form.write(old, ending)];
        assert.deepEqual(await Promise.all(together), [false, false], ending.kind);
      }
      await second.settle({ kind: "bury" });
      assert.equal(await form.write(second.token, { kind: "remove", acked: true }), false);
    },
  })),
  {
    name: "settles that arrive together are each guarded by their own token",
    async run(database) {
      await using form = await openForm(database, true);
      for (let n = 0; n < 20; n++) await form.insert();
      const claims = await form.claim(20);
      assert.equal(claims.length, 20);
      await form.query("UPDATE jobs SET attempt = attempt + 1 WHERE id % 2 = 0");
      const settled = await Promise.allSettled(
        claims.map((claim, index) =>
          claim.settle(index % 3 === 0 ? { kind: "free" } : { kind: "remove", acked: true })
        ),
      );
      for (const [index, { id }] of claims.entries()) {
        const lost = BigInt(id) % 2n === 0n;
        const result = settled[index]!;
        assert.equal(result.status, lost ? "rejected" : "fulfilled");
        if (result.status === "rejected") assert(result.reason instanceof LeaseLostError);
      }
    },
  },
  {
    name: "a delayed row is not claimed before its time, and then in one piece",
    async run(database) {
      await using form = await openForm(database, true);
      await form.insert();
      const [first] = await form.claim(1);
      await first!.settle({ kind: "delay", delay: 500 });
      const start = now();
      assert.deepEqual(await form.claim(1), []);
      const second = await form.claimSoon();
      assert(now() - start >= 490);
      assert.equal(second.attempt, 2);
      await second.settle({ kind: "remove", acked: true });
    },
  },
];

/** The lease form alone, on the suite's table. */
interface TestForm extends AsyncDisposable {
  claim: LeaseForm["claim"];
  write: LeaseForm["write"];
  /** Claims one row, within the few seconds that a freed row may take to be free. */
  claimSoon(): Promise<LeaseClaim>;
  insert(): Promise<void>;
  query(text: string): Promise<void>;
}

async function openForm(
  database: TestDatabase,
  counted: boolean,
  jobs: AnyInbox = counted ? countedJobs : uncountedJobs,
): Promise<TestForm> {
  const driver = database.connect();
  const pool = new Pool(driver);
  await pool.open();
  await createTables(driver, pool, [jobs]);
  const facts = await checkTables(driver, pool, [{ inbox: jobs, subscription: undefined }]);
  const form = new LeaseForm({
    queue: "jobs",
    pool,
    statements: driver.dialect.lease(jobs.description, facts.get(jobs)!, {
      clock: "database",
      group: "jobs",
      ...(jobs.description.group === undefined ? {} : { deadLetter: { group: "dead" } }),
    }),
    leaseSeconds: 30,
    now: databaseNow,
    countsAttempts: counted,
    keepsDelays: counted,
    runtime: PRODUCTION,
  });
  const query = async (text: string): Promise<void> => {
    await pool.query({ text, params: [] }, undefined);
  };
  return {
    claim: (limit) => form.claim(limit),
    write: (token, ending) => form.write(token, ending),
    query,
    insert: () => query(`INSERT INTO jobs (payload) VALUES ('{"name":"a"}')`),
    async claimSoon(): Promise<LeaseClaim> {
      for (let tries = 0; tries < 100; tries++) {
        const [claim] = await form.claim(1);
        if (claim !== undefined) return claim;
        await sleep(50);
      }
      throw new assert.AssertionError({ message: "The row has not come back within 5 s" });
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await form.close();
      await pool.close();
    },
  };
}
