import assert from "node:assert/strict";
import type { GuardedWrite, LeaseStatements, LeaseToken } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import { mysqlDialect } from "./dialect.ts";
import { GIVEN_CLOCK, LEASE, tableTest, type TestTable } from "./table_for_test.ts";

const NOW = Date.parse("2026-01-31T10:00:00.250Z");
const EXPIRY = Date.parse("2026-01-31T10:00:31Z");
const TOKEN: LeaseToken = { id: 1n, attempt: 2, expiry: EXPIRY, latestExpiry: EXPIRY };
const MORE = { now: NOW, delay: 5000, until: EXPIRY + 30_000 };

const BEFORE: SqlRow = {
  queue: "q",
  attempt: 2,
  priority: 0,
  locked_until: "2026-01-31 10:00:31.000",
  retry_after: "2020-01-01 00:00:00.000",
  processed_at: null,
};

const AFTER: Readonly<Record<string, SqlRow>> = {
  renew: { locked_until: "2026-01-31 10:01:01.000" },
  remove: { locked_until: null, processed_at: "2026-01-31 10:00:00.250" },
  free: { locked_until: null },
  delay: { locked_until: null, retry_after: "2026-01-31 10:00:05.250" },
  release: { locked_until: "2026-01-31 10:00:01.000", attempt: 1 },
};

for (const way of ["one", "many"] as const) {
  tableTest(`a guarded write of ${way} writes what it says, under its guard`, LEASE, async (on) => {
    const lease = mysqlDialect.lease(on.table, on.facts, GIVEN_CLOCK);
    for (const [name, changed] of Object.entries(AFTER)) {
      const write = lease[name as "renew"];
      await fill(on);
      for (const [reason, token] of Object.entries(FOREIGN)) {
        assert.equal(await apply(on, way, write, { ...TOKEN, ...token }), 0, `${name}: ${reason}`);
      }
      assert.deepEqual(await rowAt(on, 1), BEFORE);
      assert.equal(await apply(on, way, write, TOKEN), 1, name);
      assert.deepEqual(await rowAt(on, 1), { ...BEFORE, ...changed }, name);
      assert.deepEqual(await rowAt(on, 2), { ...BEFORE, queue: "other" }, "nothing else changes");
    }
  });

  tableTest(
    `a guarded write of ${way} deletes rows that are not marked`,
    { ...LEASE, processedAt: undefined, attempt: undefined },
    async (on) => {
      const { remove, look } = mysqlDialect.lease(on.table, on.facts, GIVEN_CLOCK);
      await on.sql(
        "INSERT INTO {table} (queue, payload, locked_until) VALUES ('q', '', '2026-01-31 10:00:31')",
      );
      const late = { ...TOKEN, expiry: EXPIRY - 1000, latestExpiry: EXPIRY + 1000 };
      assert.equal(await apply(on, way, remove, late), 0);
      assert.deepEqual((await on.run(look, { id: 1n })).rows, [{ id: 1n }]);
      assert.equal(await apply(on, way, remove, TOKEN), 1);
      assert.deepEqual((await on.run(look, { id: 1n })).rows, []);
    },
  );
}

tableTest("a row that is done or of another queue is not there", LEASE, async (on) => {
  await fill(on);
  const { look, readId } = mysqlDialect.lease(on.table, on.facts, GIVEN_CLOCK);
  assert.deepEqual((await on.run(look, { id: 1n })).rows.map(readId), [1n]);
  assert.deepEqual((await on.run(look, { id: 2n })).rows, [], "of another queue");
  await on.sql("UPDATE {table} SET processed_at = UTC_TIMESTAMP() WHERE id = 1");
  assert.deepEqual((await on.run(look, { id: 1n })).rows, [], "done");
});

tableTest("claims and writes of many wait for no other row of a small table", LEASE, async (on) => {
  for (let row = 0; row < 3; row++) await fill(on, false);
  await on.other.begin();
  await on.other.query(`SELECT id FROM ${on.name} WHERE id = 3 FOR UPDATE`);
  const lease: LeaseStatements = mysqlDialect.lease(on.table, on.facts, GIVEN_CLOCK);
  const { claim } = lease;
  assert(claim.kind === "find, then take");
  await on.session.query("SET innodb_lock_wait_timeout = 1");
  for (const write of [lease.renew, lease.delay, lease.remove]) {
    assert.equal(await apply(on, "many", write as GuardedWrite<never>, TOKEN), 1);
    await on.sql(
      "UPDATE {table} SET locked_until = '2026-01-31 10:00:31', processed_at = NULL WHERE id = 1",
    );
  }
  await on.session.begin();
  const ids = [1n, 2n];
  assert.equal((await on.run(claim.take, { ids, now: NOW, leaseSeconds: 30 })).changes, 2);
  const rows = (await on.run(claim.fetch!, { ids })).rows.map(lease.read);
  assert.deepEqual(rows.map(({ id, attempt, expiry }) => [id, attempt, expiry]), [
    [1n, 3, EXPIRY],
    [2n, 3, EXPIRY],
  ]);
});

tableTest(
  "text ids, and times in milliseconds, are taken and written",
  {
    ...LEASE,
    id: { column: "id", generatedBy: "service" },
    alter: ["locked_until", "retry_after", "processed_at"].map((column) =>
      `ALTER TABLE {table} MODIFY ${column} BIGINT NULL DEFAULT NULL`
    ),
  },
  async (on) => {
    const lease = mysqlDialect.lease(on.table, on.facts, GIVEN_CLOCK);
    const { claim, delay, remove } = lease;
    assert(claim.kind === "find, then take");
    await on.sql(
      "INSERT INTO {table} (id, queue, payload) VALUES ('a''b', 'q', ''), ('A''B', 'q', '')",
    );
    const found = await on.run(claim.find.each[0]!, { now: NOW, limit: 5, priority: 0n });
    assert.deepEqual(found.rows.map(lease.readId), ["A'B", "a'b"]);
    const ids = ["a'b"];
    await on.run(claim.take, { ids, now: NOW, leaseSeconds: 30 });
    const [row] = (await on.run(claim.fetch!, { ids })).rows.map(lease.read);
    assert.deepEqual([row?.id, row?.attempt, row?.expiry], ["a'b", 2, EXPIRY]);
    const token = { ...TOKEN, id: "a'b" };
    assert.equal(await apply(on, "many", delay, token), 1);
    const { rows: [delayed] } = await on.sql("SELECT retry_after FROM {table} WHERE id = 'a''b'");
    assert.equal(delayed?.retry_after, BigInt(NOW + 5000));
    assert.equal(await apply(on, "one", remove, token), 0, "its lease has been given up");
  },
);

const FOREIGN: Readonly<Record<string, Partial<LeaseToken>>> = {
  "another attempt": { attempt: 1 },
  "a lease that ends later than any of the holder's": { latestExpiry: EXPIRY - 1000 },
  "a row of another queue": { id: 2n },
};

async function apply(
  { run }: TestTable,
  way: "one" | "many",
  write: GuardedWrite<never>,
  token: LeaseToken,
): Promise<number> {
  const values = { ...token, ...MORE };
  return way === "one"
    ? (await run(write.one, values as never)).changes
    : (await run(write.many!, [{ ...values, id: "99" }, values] as never)).changes;
}

async function fill({ sql }: TestTable, afresh = true): Promise<void> {
  if (afresh) await sql("TRUNCATE TABLE {table}");
  await sql(
    `INSERT INTO {table} (queue, payload, attempt, locked_until, retry_after)
     VALUES ('q', '{}', 2, '2026-01-31 10:00:31', '2020-01-01'),
       ('other', '{}', 2, '2026-01-31 10:00:31', '2020-01-01')`,
  );
}

async function rowAt({ sql }: TestTable, id: number): Promise<SqlRow | undefined> {
  const columns = Object.keys(BEFORE).join(", ");
  return (await sql(`SELECT ${columns} FROM {table} WHERE id = ${id}`)).rows[0];
}
