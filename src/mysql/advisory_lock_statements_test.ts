import assert from "node:assert/strict";
import type { AdvisoryLockStatements, Candidate, LockedRowAt } from "../driver/dialect.ts";
import type { Session } from "../driver/driver.ts";
import type { Statement } from "../driver/statement.ts";
import { mysqlDialect } from "./dialect.ts";
import { lockName } from "./lock_name.ts";
import { connectionOf, firstRow } from "./server_for_test.ts";
import {
  ADVISORY_LOCK,
  CLOCKS,
  contentOf,
  DATABASE_CLOCK,
  GIVEN_CLOCK,
  tableTest,
  type TestTable,
} from "./table_for_test.ts";

const NOW = Date.parse("2026-01-31T10:00:00.250Z");

for (
  const [kind, alter] of [["", []], [
    " where due times may be NULL",
    ["ALTER TABLE {table} MODIFY retry_after DATETIME(3) NULL"],
  ]] as const
) {
  tableTest(
    `candidates come page by page, in claim order, each once${kind}`,
    { ...ADVISORY_LOCK, alter },
    async (on) => {
      const due = alter.length === 0 ? "'2020-01-01'" : "IF(n % 5 = 0, NULL, '2020-01-01')";
      await on.sql(
        `INSERT INTO {table} (queue, payload, account, priority, retry_after, processed_at)
         WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100)
         SELECT IF(n % 7 = 0, 'other', 'q'), '', n % 10, n % 2,
           IF(n % 6 = 0, '2999-01-01', ${due}) + INTERVAL n % 3 SECOND,
           IF(n % 8 = 0, '2020-01-01', NULL) FROM n`,
      );
      const { rows } = await on.sql(
        `SELECT id, account FROM {table} WHERE queue = 'q' AND processed_at IS NULL
         AND (retry_after IS NULL OR retry_after <= UTC_TIMESTAMP())
         ORDER BY priority, retry_after, id`,
      );
      const wanted = rows.map(({ id, account }) => [id, `account-${account}`]);
      for (const clock of CLOCKS) {
        const statements = statementsOf(on, { ...DATABASE_CLOCK, clock });
        for (const limit of [1, 7, 1000]) {
          const found = await allCandidates(on, statements, limit);
          assert.deepEqual(found.map(({ id, key }) => [id, key]), wanted, `${clock} ${limit}`);
        }
      }
    },
  );
}

for (const type of ["DATETIME", "DATETIME(6)", "TIMESTAMP(3)", "BIGINT"]) {
  tableTest(
    `a page goes on after an exact time: ${type}`,
    { ...ADVISORY_LOCK, alter: [`ALTER TABLE {table} MODIFY retry_after ${type} NULL`] },
    async (on) => {
      const times = type === "BIGINT"
        ? ["1", "1", "2"]
        : ["1.9", "2", "2"].map((second) =>
          `'2020-01-01 00:00:0${type === "DATETIME" ? Math.floor(Number(second)) : second}'`
        );
      const rows = [...times, ...times].map((time) => `('q', '', ${time})`).join(", ");
      await on.sql(`INSERT INTO {table} (queue, payload, retry_after) VALUES ${rows}`);
      const all = await allCandidates(on, statementsOf(on), 1000);
      assert.equal(all.length, 6);
      assert.deepEqual(await allCandidates(on, statementsOf(on), 1), all);
    },
  );
}

tableTest("a candidate whose key is locked is seen to be held", ADVISORY_LOCK, async (on) => {
  await on.sql(
    "INSERT INTO {table} (queue, payload, account) VALUES ('q', '', 'A'), ('q', '', 'a')",
  );
  const name = `SELECT GET_LOCK(${lockName("?")}, 0) AS got`;
  assert.equal(Number((await firstRow(on.other, name, ["account-a"])).got), 1);
  const found = await allCandidates(on, statementsOf(on), 10);
  assert.deepEqual(found.map(({ key, held }) => [key, held]), [
    ["account-A", false],
    ["account-a", true],
  ]);
  await on.other.query("SELECT RELEASE_ALL_LOCKS() AS released");
});

const KEYS: Readonly<Record<string, readonly [type: string, value: string, key: string]>> = {
  "text of another character set": ["VARCHAR(20) CHARACTER SET latin1", "'übe '", "k:übe "],
  "NULL": ["INT NULL", "NULL", "k:"],
  "an integer": ["BIGINT UNSIGNED", "18446744073709551615", "k:18446744073709551615"],
  "bytes": ["BINARY(3)", "x'FF0061'", "k:FF0061"],
  "a time": ["DATETIME(3)", "'2026-01-31 10:00:00.1'", "k:2026-01-31 10:00:00.100"],
};

for (const [kind, [type, value, key]] of Object.entries(KEYS)) {
  tableTest(
    `a key is the text of its columns, and is compared by bytes: ${kind}`,
    {
      ...ADVISORY_LOCK,
      lockKey: ["k:", { column: "account" }],
      alter: [`ALTER TABLE {table} MODIFY account ${type}`],
    },
    async (on) => {
      const holder = BigInt(await connectionOf(on.session));
      await on.sql(`INSERT INTO {table} (queue, payload, account) VALUES ('q', '', ${value})`);
      const statements = statementsOf(on);
      const [candidate] = await allCandidates(on, statements, 10);
      assert.equal(candidate?.key, key);
      const row = { id: 1n, now: NOW, holder, attempt: undefined };
      for (const other of [key.toUpperCase(), `${key} `, "k"]) {
        assert.equal(await take(on, statements, { ...row, key: other }), undefined, other);
      }
      assert.deepEqual(await take(on, statements, { ...row, key }), {
        id: 1n,
        attempt: 1,
        content: contentOf(""),
      });
    },
  );
}

tableTest(
  "only a claimable row is taken, by the session that holds the lock",
  ADVISORY_LOCK,
  async (on) => {
    const holder = BigInt(await connectionOf(on.session));
    const row = { id: 1n, now: NOW, holder, attempt: undefined, key: "account-a" };
    await on.sql(
      "INSERT INTO {table} (queue, payload, account, attempt) VALUES ('q', 'p', 'a', 3)",
    );
    for (const clock of CLOCKS) {
      const statements = statementsOf(on, { ...GIVEN_CLOCK, clock });
      for (
        const [column, value] of [
          ["queue", "'other'"],
          ["processed_at", "UTC_TIMESTAMP()"],
          ["retry_after", "'2999-01-01'"],
          ["account", "'b'"],
        ] as const
      ) {
        const before = await firstRow(on.session, `SELECT ${column} AS it FROM ${on.name}`);
        await on.sql(`UPDATE {table} SET ${column} = ${value}`);
        assert.equal(await take(on, statements, row), undefined, column);
        await on.sql(`UPDATE {table} SET ${column} = ?`, [before.it!]);
      }
      assert.equal(await take(on, statements, { ...row, holder: holder + 1n }), undefined);
      assert.equal(Number((await on.sql("SELECT attempt FROM {table}")).rows[0]?.attempt), 3);
      assert.deepEqual(await take(on, statements, row), {
        id: 1n,
        attempt: 3,
        content: contentOf("p"),
      });
      assert.equal(Number((await on.sql("SELECT attempt FROM {table}")).rows[0]?.attempt), 4);
      await on.sql("UPDATE {table} SET attempt = 3");
    }
  },
);

tableTest(
  "without attempts the row is locked and read",
  { ...ADVISORY_LOCK, attempt: undefined },
  async (on) => {
    const holder = BigInt(await connectionOf(on.session));
    await on.sql("INSERT INTO {table} (queue, payload, account) VALUES ('q', 'p', 'a')");
    const statements = statementsOf(on);
    assert.equal(statements.giveBack, undefined);
    const row = { id: 1n, now: NOW, holder, attempt: undefined };
    assert.equal(await take(on, statements, { ...row, key: "account-b" }), undefined);
    assert.deepEqual(await take(on, statements, { ...row, key: "account-a" }), {
      id: 1n,
      attempt: undefined,
      content: contentOf("p"),
    });
    assert.equal((await on.run(statements.remove, row)).changes, 1);
  },
);

const WRITES: Readonly<Record<string, object>> = {
  remove: { processed_at: "2026-01-31 10:00:00.250" },
  delay: { retry_after: "2026-01-31 10:00:05.250" },
  giveBack: { attempt: 3 },
};

tableTest("a write changes the row while its holder has it", ADVISORY_LOCK, async (on) => {
  const statements = statementsOf(on);
  const holder = BigInt(await connectionOf(on.session));
  const row: LockedRowAt = { id: 1n, now: NOW, holder, attempt: 3 };
  for (const [name, changed] of Object.entries(WRITES)) {
    await on.sql("TRUNCATE TABLE {table}");
    await on.sql(
      "INSERT INTO {table} (queue, payload, attempt) VALUES ('q', '', 4), ('other', '', 4)",
    );
    const before = await firstRow(on.session, `SELECT * FROM ${on.name} WHERE id = 1`);
    const write = statements[name as "remove"] as Statement<LockedRowAt>;
    const changes = async (values: Partial<LockedRowAt>) =>
      (await on.run(write, { ...row, delay: 5000, ...values } as LockedRowAt))
        .changes;
    assert.equal(await changes({ holder: holder + 1n }), 0, name);
    assert.equal(await changes({ attempt: 4 }), 0, name);
    assert.equal(await changes({ id: 2n }), 0, name);
    assert.equal(await changes({}), 1, name);
    assert.deepEqual(await firstRow(on.session, `SELECT * FROM ${on.name} WHERE id = 1`), {
      ...before,
      ...changed,
    });
  }
});

function statementsOf(
  { table, facts }: TestTable,
  use: typeof GIVEN_CLOCK = GIVEN_CLOCK,
): AdvisoryLockStatements {
  return mysqlDialect.advisoryLock(table, facts, use);
}

/** Reads all candidates, in pages of this size. */
async function allCandidates(
  { run }: TestTable,
  { candidates, readCandidate }: AdvisoryLockStatements,
  limit: number,
): Promise<readonly Candidate[]> {
  const all: Candidate[] = [];
  for (let atLeast = -(2n ** 63n);;) {
    const { rows: [next] } = await run(candidates.nextPriority!, { atLeast });
    if (next?.priority == null) return all;
    const priority = BigInt(next.priority as number);
    for (const part of candidates.each) {
      const values = { now: Date.now(), limit, priority };
      let page = (await run(part.first, values)).rows.map(readCandidate);
      while (page.length > 0) {
        all.push(...page);
        const after = page.at(-1)!;
        page = (await run(part.next, { ...values, after })).rows.map(readCandidate);
      }
    }
    atLeast = priority + 1n;
  }
}

/** Takes a row as the form does. */
async function take(
  { run }: { readonly run: TestTable["run"]; readonly session: Session },
  { take, read }: AdvisoryLockStatements,
  values: LockedRowAt & { readonly key: string },
) {
  let result;
  for (const statement of take) {
    result = await run(statement, values);
    if (result.rows.length === 0 && result.changes === 0) return undefined;
  }
  return read(result!.rows[0]!);
}
