import assert from "node:assert/strict";
import type { SqlValue } from "../driver/driver.ts";
import {
  firstRow,
  isDriverError,
  query,
  serverTest,
  withDriver,
  withTable,
} from "./server_for_test.ts";

const LARGEST = 2n ** 63n - 1n;

serverTest(
  "whole numbers are exact, in rows, comparisons and arithmetic",
  (server) =>
    withDriver(
      server,
      {},
      (driver) =>
        withTable(driver, "id BIGINT UNSIGNED PRIMARY KEY", async (table) => {
          const values = [2n ** 53n, 2n ** 53n + 1n, LARGEST, LARGEST + 1n, 2n ** 64n - 1n];
          for (const value of values) {
            await query(driver, `INSERT INTO ${table} VALUES (?)`, [value]);
            const found = `SELECT id FROM ${table} WHERE id = ? AND id <= ? AND id = ? + 0`;
            assert.deepEqual((await query(driver, found, [value, value, value])).rows, [{
              id: value,
            }]);
          }
          const { rows } = await query(driver, `SELECT id FROM ${table} ORDER BY id`);
          assert.deepEqual(
            rows.map(({ id }) => id),
            values,
          );
          for (const value of [-(2n ** 63n), -5n, 0n, 7, -1, Number.MAX_SAFE_INTEGER]) {
            assert.equal(
              (await firstRow(driver, "SELECT ? + 0 AS same", [value])).same,
              BigInt(value),
            );
          }
          assert.equal((await firstRow(driver, "SELECT ? AS half", [0.5])).half, 0.5);
        }),
    ),
);

serverTest("small integers are numbers", (server) =>
  withDriver(
    server,
    {},
    (driver) =>
      withTable(driver, "a TINYINT, b SMALLINT, c MEDIUMINT, d INT UNSIGNED", async (table) => {
        const row = { a: -128, b: -32768, c: -8388608, d: 4294967295 };
        await query(driver, `INSERT INTO ${table} VALUES (?, ?, ?, ?)`, Object.values(row));
        assert.deepEqual(await firstRow(driver, `SELECT * FROM ${table}`), row);
        assert.deepEqual(await firstRow(driver, `SELECT * FROM ${table} WHERE a = ?`, [-128]), row);
      }),
  ));

serverTest(
  "LIMIT takes a parameter",
  (server) =>
    withDriver(server, {}, (driver) =>
      withTable(driver, "id INT PRIMARY KEY", async (table) => {
        await query(driver, `INSERT INTO ${table} VALUES (1), (2), (3)`);
        for (const limit of [2, 2n]) {
          const text = `SELECT id FROM ${table} ORDER BY id LIMIT ? FOR UPDATE SKIP LOCKED`;
          const { rows } = await query(driver, text, [limit]);
          assert.deepEqual(rows, [{ id: 1 }, { id: 2 }]);
        }
      })),
);

const COLUMNS =
  "id INT, d6 DATETIME(6), d0 DATETIME, t3 TIMESTAMP(3) NULL, day DATE, time TIME(6), " +
  "money DECIMAL(20, 4), note TEXT, bytes BLOB, json JSON";
const ROWS: readonly (readonly SqlValue[])[] = [
  [
    ...[1, "2026-01-31 10:00:00.123456", "2026-01-31 10:00:00", "2026-01-31 10:00:00.120"],
    ...["2026-01-31", "-10:00:00.500000", "12345678901234.5000", "a\0b 🐙 \\' \u{10FFFF}"],
    ...[new Uint8Array([0, 255, 0, 39, 92, 128]), '{"a": [1.0, 90071992547409931]}'],
  ],
  [
    ...[2, "2026-01-31 10:00:00.000000", "2026-01-31 00:00:00", "2026-01-31 00:00:00.000"],
    ...["0001-01-01", "10:00:00.000000", "0.0000", "", new Uint8Array(), "null"],
  ],
  [3, null, null, null, null, null, null, null, null, null],
];

serverTest(
  "values come back as the server's own text, and bytes as they are",
  (server) =>
    withDriver(server, {}, (driver) =>
      withTable(driver, COLUMNS, async (table) => {
        for (const row of ROWS) {
          await query(driver, `INSERT INTO ${table} VALUES (${row.map(() => "?").join()})`, row);
          const prepared = await firstRow(driver, `SELECT * FROM ${table} WHERE id = ?`, [row[0]!]);
          assert.deepEqual(Object.values(prepared), row);
          assert.deepEqual(
            await firstRow(driver, `SELECT * FROM ${table} WHERE id = ${row[0]}`),
            prepared,
          );
          const { bytes } = prepared;
          if (bytes !== null) assert.equal((bytes as Uint8Array).constructor, Uint8Array);
        }
      })),
);

serverTest("an INSERT returns the id that the database made", (server) =>
  withDriver(
    server,
    {},
    (driver) =>
      withTable(driver, "id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, n INT", async (table) => {
        const insert = `INSERT INTO ${table} (n) VALUES (?)`;
        assert.deepEqual(await query(driver, insert, [1]), { rows: [{ id: 1n }], changes: 1 });
        for (const next of [2n ** 53n + 1n, LARGEST + 1n]) {
          await query(driver, `ALTER TABLE ${table} AUTO_INCREMENT = ${next}`);
          assert.deepEqual((await query(driver, insert, [1])).rows, [{ id: next }]);
        }
      }),
  ));

serverTest("errors tell what is wrong, and no values", (server) =>
  withDriver(
    server,
    {},
    (driver) =>
      withTable(driver, "id INT PRIMARY KEY, note VARCHAR(5) UNIQUE", async (table) => {
        const insert = `INSERT INTO ${table} VALUES (?, ?)`;
        await query(driver, insert, [1, "s3"]);
        for (
          const params of [[2, "s3"], ["s3 for 'x", "a"], [null, "s3"], [2, "s3s3s3"], [3e9, "s3"]]
        ) {
          await assert.rejects(query(driver, insert, params), (error: Error) => {
            assert(!error.message.includes("s3"), error.message);
            return isDriverError("constraint")(error);
          });
        }
        await assert.rejects(query(driver, "SELECT no_column"), isDriverError("missing", /1054/));
        await assert.rejects(query(driver, "SELECT * FROM no_table"), isDriverError("missing"));
        await assert.rejects(
          query(driver, "SELEC 1"),
          isDriverError("other", /^Cannot run SELEC 1:/),
        );
      }),
  ));

serverTest(
  "what the server would not read is not sent",
  (server) =>
    withDriver(server, {}, async (driver) => {
      const { largest } = await firstRow(driver, "SELECT @@max_allowed_packet AS largest");
      const text = "a".repeat(Number(largest));
      await assert.rejects(
        query(driver, "SELECT LENGTH(?)", [text]),
        isDriverError("constraint", /^Cannot run SELECT LENGTH\(\?\): .*max_allowed_packet/),
      );
      const row = await firstRow(driver, "SELECT LENGTH(?) AS length", [text.slice(200)]);
      assert.equal(Number(row.length), text.length - 200);
    }),
);
