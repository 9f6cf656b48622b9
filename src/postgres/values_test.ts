import assert from "node:assert/strict";
import type { SqlValue } from "../driver/driver.ts";
import { firstRow, isDriverError, query, serverTest, withDriver } from "./server_for_test.ts";

/** Expressions, and what their values are here. */
const READ: readonly (readonly [string, SqlValue])[] = [
  ["9223372036854775807::int8", 2n ** 63n - 1n],
  ["1::int8", 1n],
  ["(-2147483648)::int4", -2147483648],
  ["32767::int2", 32767],
  ["0.1::float8", 0.1],
  ["'-Infinity'::float8", -Infinity],
  ["12345678901234567890.10::numeric", "12345678901234567890.10"],
  ["true", 1],
  ["false", 0],
  ["NULL::int8", null],
  ["''", ""],
  ["timestamptz '2026-01-31 10:00:00.123456+02'", "2026-01-31 08:00:00.123456+00"],
  ["timestamp '2026-01-31 10:00:00.123456'", "2026-01-31 10:00:00.123456"],
  ["date '2026-01-31'", "2026-01-31"],
  ["timestamptz 'infinity'", "infinity"],
  [`'{"a": 12345678901234567890}'::json`, '{"a": 12345678901234567890}'],
  [`'{"a":1}'::jsonb`, '{"a": 1}'],
  ["ARRAY[1, 2]", "{1,2}"],
  ["'\\x00ff5c'::bytea", new Uint8Array([0, 255, 92])],
  ["''::bytea", new Uint8Array()],
];

/** Values as they are written, the type they are read as, and what comes back. */
const WRITTEN: readonly (readonly [SqlValue, string, SqlValue])[] = [
  [2n ** 63n - 1n, "int8", 2n ** 63n - 1n],
  [-(2n ** 63n), "int8", -(2n ** 63n)],
  ["9007199254740993", "int8", 9007199254740993n],
  [5, "int4", 5],
  [1.5, "float8", 1.5],
  [null, "text", null],
  ["", "text", ""],
  ["\uFEFFÄ€😀 \\ ' \" $1 \n", "text", "\uFEFFÄ€😀 \\ ' \" $1 \n"],
  ["2026-01-31 10:00:00.123456+00", "timestamptz", "2026-01-31 10:00:00.123456+00"],
  ['{"a":"b"}', "json", '{"a":"b"}'],
  ['{"a":"b"}', "jsonb", '{"a": "b"}'],
  ['"text"', "jsonb", '"text"'],
  ["t", "bool", 1],
  [new Uint8Array([0, 1, 92, 120, 255, 0]), "bytea", new Uint8Array([0, 1, 92, 120, 255, 0])],
  [new Uint8Array(), "bytea", new Uint8Array()],
];

serverTest(
  "values come as they are in the database",
  (server) =>
    withDriver(server, {}, async (driver) => {
      for (const [expression, value] of READ) {
        const row = await firstRow(driver, `SELECT ${expression} AS value`);
        assert.deepEqual(row, { value }, expression);
      }
    }),
);

serverTest("values are stored as they are given, whether prepared or not", async (server) => {
  for (const prepare of [true, false]) {
    await withDriver(server, { prepare, connections: 1 }, async (driver) => {
      const columns = WRITTEN.map(([, type], index) => `c${index} ${type}`);
      const session = await driver.session();
      await session.begin();
      await session.query(`CREATE TEMP TABLE stored (${columns.join(", ")}) ON COMMIT DROP`);
      const placeholders = WRITTEN.map((_, index) => `$${index + 1}`);
      const insert = `INSERT INTO stored VALUES (${placeholders.join(", ")})`;
      await session.query(insert, WRITTEN.map(([value]) => value));
      const row = await firstRow(session, "SELECT * FROM stored");
      assert.deepEqual(Object.values(row), WRITTEN.map(([, , value]) => value));
      await session.release();
    });
  }
});

serverTest(
  "bytes are read in either form the server writes them",
  (server) =>
    withDriver(`${server}?bytea_output=escape`, {}, async (driver) => {
      const value = Uint8Array.from({ length: 256 }, (_, byte) => byte);
      assert.deepEqual(await firstRow(driver, "SELECT $1::bytea AS value", [value]), { value });
    }),
);

serverTest("what a value cannot be is an error that does not show it, and harms nothing", (
  server,
) =>
  withDriver(server, { connections: 1 }, async (driver) => {
    const text = "SELECT $1::text AS value";
    await assert.rejects(
      query(driver, text, ["secret\0"]),
      isDriverError("other", /22021/, /store such text as bytea/, /^((?!secret).)*$/),
    );
    await assert.rejects(
      query(driver, "SELECT $1::int4", ["my secret"]),
      isDriverError("other", /22P02/, /^((?!secret).)*$/),
    );
    const sleeping = query(driver, "SELECT pg_sleep(0.1)");
    const undefinedValue = [undefined as unknown as null];
    await assert.rejects(query(driver, text, undefinedValue), isDriverError("other", /\$1/));
    await sleeping;
    assert.deepEqual(await firstRow(driver, text, ["fine"]), { value: "fine" });
  }));
