import assert from "node:assert/strict";
import type { SchemaProblem } from "../errors.ts";
import { firstRow } from "./server_for_test.ts";
import { ADVISORY_LOCK, LEASE, ROW_LOCK, type TableOptions, tableTest } from "./table_for_test.ts";

for (
  const [name, options] of Object.entries(
    {
      "lease": LEASE,
      "lease, FIFO": { ...LEASE, fifo: true },
      "row lock": ROW_LOCK,
      "row lock, FIFO": { ...ROW_LOCK, fifo: true },
      "row lock, nothing else": { form: "row lock" },
      "advisory lock": ADVISORY_LOCK,
      "advisory lock, a role in its key": { ...ADVISORY_LOCK, lockKey: [{ column: "queue" }] },
      "a service's ids": { ...LEASE, id: { column: "id", generatedBy: "service" } },
    } satisfies Record<string, TableOptions>,
  )
) {
  tableTest(`what ddl makes is fit, and needs no warning: ${name}`, options, ({ facts }) => {
    assert.deepEqual([facts.exists, facts.problems, facts.warnings], [true, [], []]);
    return Promise.resolve();
  });
}

/** What is wrong is found, and is right after what is to be run. */
const PROBLEMS: Readonly<Record<string, readonly [alter: string, column: string, RegExp]>> = {
  "no column": ["DROP COLUMN retry_after", "retry_after", /does not exist/],
  "a group that is no text": ["MODIFY queue INT NOT NULL", "queue", /has the type int/],
  "a priority that is no integer": [
    "MODIFY priority DOUBLE NOT NULL DEFAULT 0",
    "priority",
    /has the type double/,
  ],
  "a priority that may be NULL": ["MODIFY priority SMALLINT NULL", "priority", /may be NULL/],
  "a due time without a time": [
    "MODIFY retry_after DATE NOT NULL",
    "retry_after",
    /has the type date/,
  ],
  "a mark that may not be NULL": [
    "MODIFY processed_at DATETIME NOT NULL",
    "processed_at",
    /may not be NULL/,
  ],
  "a lease that may not be NULL": [
    "MODIFY locked_until DATETIME NOT NULL",
    "locked_until",
    /may not be NULL/,
  ],
};

for (const [name, [alter, column, problem]] of Object.entries(PROBLEMS)) {
  tableTest(`a problem is found, and its fix works: ${name}`, LEASE, async ({ sql, inspect }) => {
    await sql(`ALTER TABLE {table} ${alter}`);
    const found = (await inspect()).problems;
    assert.deepEqual(found.map(({ column }) => column), [column]);
    assert.match(found[0]!.problem, problem);
    await fix(sql, found[0]!);
    assert.deepEqual((await inspect()).problems, []);
  });
}

tableTest("a column of the key has to be there", ADVISORY_LOCK, async ({ sql, inspect }) => {
  await sql("ALTER TABLE {table} DROP COLUMN account");
  const [found] = (await inspect()).problems;
  assert.deepEqual([found?.column, found?.problem], ["account", "the column does not exist"]);
  await fix(sql, found!);
  assert.deepEqual((await inspect()).problems, []);
  await sql("ALTER TABLE {table} MODIFY account BINARY(16) NULL");
  assert.deepEqual((await inspect()).problems, [], "it may be of any type");
});

const WARNINGS: Readonly<Record<string, readonly [alter: string, column: string, RegExp]>> = {
  "a narrow id": ["MODIFY id INT AUTO_INCREMENT", "id", /runs out after 2,147,483,647 rows/],
  "a narrow unsigned id": [
    "MODIFY id MEDIUMINT UNSIGNED AUTO_INCREMENT",
    "id",
    /runs out after 16,777,215 rows/,
  ],
  "a collation that ignores case": [
    "MODIFY queue VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NOT NULL",
    "queue",
    /utf8mb4_unicode_ci, takes some different names of queues for equal/,
  ],
};

for (const [name, [alter, column, problem]] of Object.entries(WARNINGS)) {
  tableTest(`a warning is given, and its fix works: ${name}`, LEASE, async ({ sql, inspect }) => {
    await sql(`ALTER TABLE {table} ${alter}`);
    const { problems, warnings } = await inspect();
    assert.deepEqual([problems, warnings.map(({ column }) => column)], [[], [column]]);
    assert.match(warnings[0]!.problem, problem);
    await fix(sql, warnings[0]!);
    assert.deepEqual((await inspect()).warnings, []);
  });
}

/** The one index that each shape needs, and others that serve or do not. */
for (const options of [LEASE, ROW_LOCK, { ...LEASE, fifo: true }, ADVISORY_LOCK]) {
  const { form, fifo = false } = options as TableOptions;
  tableTest(
    `an index that is missing is told: ${form}${fifo ? ", FIFO" : ""}`,
    options,
    async (on) => {
      const { sql, inspect, session } = on;
      const version = String((await firstRow(session, "SELECT VERSION() AS v")).v);
      const isRefused = form === "row lock" && version.includes("MariaDB");
      for (const suffix of fifo ? ["head", "leased"] : ["claim"]) {
        await sql(`DROP INDEX {table}_${suffix} ON {table}`);
      }
      const { problems, warnings } = await inspect();
      const [found, none] = isRefused ? [problems, warnings] : [warnings, problems];
      assert.deepEqual([found.length, none], [1, []]);
      assert.match(found[0]!.problem, /no index serves the claim/);
      await fix(sql, found[0]!);
      const after = await inspect();
      assert.deepEqual([after.problems, after.warnings], [[], []]);
    },
  );
}

const INDEXES: Readonly<Record<string, boolean>> = {
  "(queue, processed_at, priority, retry_after)": true,
  "(priority, queue, processed_at, retry_after)": true,
  "(priority, queue, processed_at, retry_after, attempt)": false,
  "(queue, processed_at, priority, retry_after DESC)": false,
  "(queue(10), processed_at, priority, retry_after)": false,
  "(queue, priority, retry_after, processed_at)": false,
  "(queue, processed_at, priority)": false,
  "(id, queue, processed_at, priority, retry_after)": false,
};

for (const [index, serves] of Object.entries(INDEXES)) {
  tableTest(
    `an index ${index} serves: ${serves}`,
    ROW_LOCK,
    async ({ sql, inspect, session, name }) => {
      const version = String((await firstRow(session, "SELECT VERSION() AS v")).v);
      const isOldMaria = /^10\.[67]\..*MariaDB/.test(version);
      // Before 10.8 MariaDB ignores the word, and makes an ascending index.
      if (isOldMaria && index.includes("DESC")) return;
      await sql("DROP INDEX {table}_claim ON {table}");
      await sql(`CREATE INDEX own ON {table} ${index}`);
      const { indexes } = await inspect();
      assert.equal(indexes?.free?.name, serves ? "own" : undefined, name);
    },
  );
}

tableTest("an index that is hidden from the server is not used", ROW_LOCK, async (on) => {
  await on.sql(
    "ALTER TABLE {table} ALTER INDEX {table}_claim /*M! IGNORED */ /*!80000 INVISIBLE */",
  );
  assert.equal((await on.inspect()).indexes?.free, undefined);
});

/** Runs the statements that a fix ends with. */
async function fix(sql: (text: string) => Promise<unknown>, { fix }: SchemaProblem): Promise<void> {
  const statements = /run: (.*)$/s.exec(fix)?.[1];
  assert(statements !== undefined, fix);
  for (const text of statements.split("; ")) await sql(text);
}
