import assert from "node:assert/strict";
import type { SqlValue } from "../driver/driver.ts";
import { isDriverError, query, rows, withDriver } from "./driver_for_test.ts";
import { sqlite } from "./mod.ts";

Deno.test("a transaction that is rolled back, or only released, leaves nothing", async () => {
  await withDriver(sqlite(":memory:"), async (driver) => {
    await query(driver, "CREATE TABLE notes (note)");
    for (const end of ["rollback", "release"] as const) {
      const session = await driver.session();
      await session.begin();
      await session.query("INSERT INTO notes VALUES ('gone')");
      assert.equal((await session.query("SELECT * FROM notes")).rows.length, 1);
      await session[end]();
      await session.release();
      assert.deepEqual(await rows(driver, "SELECT * FROM notes"), [], end);
    }
    const session = await driver.session();
    await session.begin();
    await session.query("INSERT INTO notes VALUES ('kept')");
    await session.commit();
    await session.release();
    assert.deepEqual(await rows(driver, "SELECT * FROM notes"), [{ note: "kept" }]);
  });
});

Deno.test("a statement that fails leaves its transaction to be rolled back", async () => {
  await withDriver(sqlite(":memory:"), async (driver) => {
    await query(driver, "CREATE TABLE notes (note UNIQUE)");
    const session = await driver.session();
    await session.begin();
    await session.query("INSERT INTO notes VALUES ('a')");
    await assert.rejects(
      session.query("INSERT INTO notes VALUES ('a')"),
      isDriverError("constraint", /UNIQUE constraint failed/, /the statement was: INSERT/),
    );
    await session.release();
    assert.deepEqual(await rows(driver, "SELECT * FROM notes"), []);
  });
});

Deno.test("statements for many sets of parameters are all carried out, or none", async () => {
  await withDriver(sqlite(":memory:"), async (driver) => {
    await query(driver, "CREATE TABLE notes (note UNIQUE)");
    const insert = "INSERT INTO notes VALUES (?) RETURNING note";
    const session = await driver.session();
    await assert.rejects(
      session.queryEach(insert, [["a"], ["b"], ["a"]]),
      isDriverError("constraint"),
    );
    assert.deepEqual(await rows(driver, "SELECT * FROM notes"), []);
    const results = await session.queryEach(insert, [["a"], ["b"]]);
    assert.deepEqual(results.map(({ rows }) => rows.map(({ note }) => note)), [["a"], ["b"]]);
    assert.deepEqual(await session.queryEach(insert, []), []);
    await session.release();
    assert.equal((await query(driver, "DELETE FROM notes")).changes, 2);
  });
});

Deno.test("a transaction keeps other sessions of the driver out until it ends", async () => {
  await withDriver(sqlite(":memory:"), async (driver) => {
    await query(driver, "CREATE TABLE notes (note)");
    const session = await driver.session();
    await session.begin();
    await session.query("INSERT INTO notes VALUES ('a')");
    const order: string[] = [];
    const others = ["b", "c"].map(async (note) => {
      await query(driver, "INSERT INTO notes VALUES (?)", [note]);
      order.push(note);
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.deepEqual(order, []);
    await session.rollback();
    await session.release();
    await Promise.all(others);
    assert.deepEqual(order, ["b", "c"]);
    assert.deepEqual(await rows(driver, "SELECT * FROM notes"), [{ note: "b" }, { note: "c" }]);
  });
});

Deno.test("values come back exactly as they were written", async () => {
  await withDriver(sqlite(":memory:"), async (driver) => {
    await query(driver, "CREATE TABLE notes (note)");
    const values: SqlValue[] = [
      null,
      0n,
      -1n,
      9007199254740993n,
      9223372036854775807n,
      -9223372036854775808n,
      "",
      "007",
      "Grüße 日本 🙂",
      'O\'Brien "quoted"',
      0.1,
      new Uint8Array([0, 255, 7]),
      new Uint8Array(0),
      new Uint8Array([1, 2, 3, 4]).subarray(1, 3),
    ];
    for (const value of values) {
      const inserted = await rows(driver, "INSERT INTO notes VALUES (?) RETURNING note", [value]);
      const place = value instanceof Uint8Array ? `${value.length} bytes` : JSON.stringify(
        value,
        (_, each) => typeof each === "bigint" ? `${each}n` : each,
      );
      assert.deepEqual(inserted, [{ note: value }], `inserted ${place}`);
      assert.deepEqual(await rows(driver, "SELECT note FROM notes"), [{ note: value }], place);
      await query(driver, "DELETE FROM notes");
    }
  });
});

Deno.test("bytes as first parameter are a value, not names of parameters", async () => {
  await withDriver(sqlite(":memory:"), async (driver) => {
    await query(driver, "CREATE TABLE notes (note BLOB, number INTEGER)");
    const bytes = new Uint8Array([1, 2, 3]);
    const insert = "INSERT INTO notes VALUES (?, ?)";
    assert.equal((await query(driver, insert, [bytes, 5n])).changes, 1);
    const session = await driver.session();
    await session.queryEach(insert, [[bytes, 6n], [bytes, 7n]]);
    await session.release();
    assert.deepEqual(await rows(driver, "SELECT number FROM notes WHERE note = ?", [bytes]), [
      { number: 5n },
      { number: 6n },
      { number: 7n },
    ]);
  });
});

Deno.test("what a statement needs and is absent, is classified as missing", async () => {
  await withDriver(sqlite(":memory:"), async (driver) => {
    await query(driver, "CREATE TABLE notes (note)");
    for (const text of ["SELECT * FROM absent", "SELECT absent FROM notes"]) {
      await assert.rejects(query(driver, text), (error: unknown) => {
        assert.equal(driver.classify(error), "missing");
        return isDriverError("missing", /no such/)(error);
      });
    }
    await assert.rejects(query(driver, "SELEC 1"), isDriverError("other", /syntax error/));
  });
});
