import assert from "node:assert/strict";
import type { NextDue, TableDescription } from "../driver/dialect.ts";
import type { Session } from "../driver/driver.ts";
import { bind, type Statement } from "../driver/statement.ts";
import { postgresDialect } from "./dialect.ts";
import { serverTest, withDriver } from "./server_for_test.ts";

const NOON = Date.UTC(2026, 0, 31, 12, 0, 0, 123);

for (const priority of ["priority", undefined]) {
  const table: TableDescription = {
    table: "next_due_jobs",
    form: "lease",
    id: { column: "id", generatedBy: "database" },
    payload: { column: "payload", storage: "text" },
    lockedUntil: "locked_until",
    priority,
    retryAfter: "due",
  };
  const title = `${priority ? "with" : "without"} priorities`;

  serverTest(
    `the next due time of timestamptz, ${title}`,
    (server) =>
      withTable(server, table, "timestamptz", async (ask, insert) => {
        const times = [
          ["2026-01-31 12:00:00.123Z", { dueIn: undefined, isWaiting: true }],
          ["2026-01-31 12:00:00.123001Z", { dueIn: 1, isWaiting: false }],
          ["2026-01-31 12:00:00.124Z", { dueIn: 1, isWaiting: false }],
          ["2026-01-31 12:00:00.223Z", { dueIn: 100, isWaiting: false }],
          ["2026-01-31 12:00:00.223001Z", { dueIn: 101, isWaiting: false }],
          ["2036-01-31 12:00:00.130Z", { dueIn: 3652 * 86_400_000 + 7, isWaiting: false }],
          ["infinity", { dueIn: undefined, isWaiting: false }],
          ["-infinity", { dueIn: undefined, isWaiting: true }],
        ] as const;
        for (const [time, expected] of times) {
          await insert(`'${time}'`, "NULL");
          assert.deepEqual(await ask(), expected, `due ${time}`);
          await insert("'-infinity'", `'${time}'`);
          assert.deepEqual(await ask(), expected, `locked until ${time}`);
        }
      }),
  );

  serverTest(
    `the next due time of milliseconds, ${title}`,
    (server) =>
      withTable(server, table, "bigint", async (ask, insert) => {
        for (const ahead of [1, 100, 3652 * 86_400_000 + 7]) {
          await insert(`${NOON + ahead}`, "NULL");
          assert.deepEqual(await ask(), { dueIn: ahead, isWaiting: false });
          await insert("0", `${NOON + ahead}`);
          assert.deepEqual(await ask(), { dueIn: ahead, isWaiting: false });
        }
        await insert(`${NOON}`, `${NOON}`);
        assert.deepEqual(await ask(), { dueIn: undefined, isWaiting: true });
      }),
  );

  serverTest(
    `a row without a due time is waiting, ${title}`,
    (server) =>
      withTable(server, table, "timestamptz", async (ask, insert) => {
        await insert("NULL", "NULL");
        assert.deepEqual(await ask(), { dueIn: undefined, isWaiting: true });
      }),
  );
}

/** A table whose due times may be NULL, in a temporary schema of its own, gone with the transaction. */
function withTable(
  server: string,
  table: TableDescription,
  type: string,
  test: (
    ask: () => Promise<NextDue>,
    insert: (due: string, lockedUntil: string) => Promise<void>,
  ) => Promise<void>,
): Promise<void> {
  return withDriver(server, {}, async (driver) => {
    const session = await driver.session();
    await session.begin();
    try {
      await session.query("SET LOCAL search_path TO pg_temp");
      for (const text of postgresDialect.ddl(table)) {
        await session.query(
          text.replace("timestamptz NOT NULL DEFAULT now()", type).replace("timestamptz", type),
        );
      }
      const inspect = postgresDialect.inspect(table);
      const facts = postgresDialect.facts(table, await run(session, inspect, undefined));
      assert.deepEqual(facts.problems, []);
      const { statement, read } = postgresDialect.nextDue(table, facts, { clock: "given" });
      await test(
        async () => read((await run(session, statement, { now: NOON }))[0]!),
        async (due, lockedUntil) => {
          await session.query(`DELETE FROM ${table.table}`);
          await session.query(
            `INSERT INTO ${table.table} (payload, due, locked_until) ` +
              `VALUES ('{}', ${due}, ${lockedUntil})`,
          );
        },
      );
    } finally {
      await session.release();
    }
  });
}

async function run<V>(session: Session, statement: Statement<V>, values: V) {
  return (await session.query(statement.text, bind(statement, values))).rows;
}
