import assert from "node:assert/strict";
import type { NewRow, TableDescription } from "../driver/dialect.ts";
import { bind } from "../driver/statement.ts";
import { postgresDialect } from "./dialect.ts";
import { serverTest, withDriver } from "./server_for_test.ts";

const TABLE: TableDescription = {
  table: "published_jobs",
  form: "lease",
  id: { column: "id", generatedBy: "database" },
  payload: { column: "payload", storage: "text" },
  lockedUntil: "locked_until",
};
const ROW: Omit<NewRow, "columns"> = {
  id: undefined,
  payload: "",
  group: "",
  headers: null,
  key: null,
  uniqueKey: null,
  priority: 0n,
  now: 0,
  delay: 0,
  at: undefined,
};
/** Values as the server shows them, by type. */
const VALUES = {
  "character(5)": "abcde",
  "bit(4)": "1011",
  "character varying(5)": "hello",
  "numeric(6,2)": "12.34",
  "timestamp(3) with time zone": "2026-01-31 12:00:00.123+00",
  "integer[]": "{1,2}",
};

serverTest(
  "other columns are written whole, whatever the length of their type",
  (server) =>
    withDriver(server, {}, async (driver) => {
      const session = await driver.session();
      await session.begin();
      try {
        await session.query("SET LOCAL search_path TO pg_temp");
        await session.query("SET LOCAL timezone TO 'UTC'");
        for (const text of postgresDialect.ddl(TABLE)) await session.query(text);
        const names = Object.keys(VALUES).map((_, n) => `c${n}`);
        for (const [n, type] of Object.keys(VALUES).entries()) {
          await session.query(`ALTER TABLE ${TABLE.table} ADD c${n} ${type}`);
        }
        const inspect = postgresDialect.inspect(TABLE);
        const { rows } = await session.query(inspect.text, bind(inspect, undefined));
        const facts = postgresDialect.facts(TABLE, rows);
        const use = { clock: "database", columns: names } as const;
        const { insert } = postgresDialect.publish(TABLE, facts, use);
        const columns = Object.fromEntries(
          Object.values(VALUES).map((value, n) => [`c${n}`, value]),
        );
        await session.query(insert.text, bind(insert, { ...ROW, columns }));
        const shown = names.map((name) => `${name}::text`).join(", ");
        const written = await session.query(`SELECT ${shown} FROM ${TABLE.table}`);
        assert.deepEqual(Object.values(written.rows[0]!), Object.values(VALUES));
      } finally {
        await session.release();
      }
    }),
);
