import assert from "node:assert/strict";
import client from "mysql2";
import promiseClient from "mysql2/promise";
import { ClosedError } from "../errors.ts";
import { mysql } from "./mod.ts";
import {
  aborted,
  connectionOf,
  firstRow,
  isDriverError,
  kill,
  query,
  serverTest,
} from "./server_for_test.ts";

serverTest("a pool of the caller's is used as it is, and never ended", async (server) => {
  const options = { uri: server, connectionLimit: 2, decimalNumbers: true, rowsAsArray: true };
  const pool = client.createPool({ ...options, namedPlaceholders: true });
  const promisePool = promiseClient.createPool(options);
  for (const each of [pool, promisePool]) {
    const driver = mysql({ pool: each });
    await driver.open();
    const session = await driver.session();
    await session.begin();
    const text = "SELECT ? AS big, CAST(1.5 AS DECIMAL(3, 1)) AS money, ':a' AS name, " +
      "CAST('2026-01-31 10:00:00' AS DATETIME) AS at";
    const row = { big: 2n ** 53n + 1n, money: "1.5", name: ":a", at: "2026-01-31 10:00:00" };
    assert.deepEqual(await firstRow(session, text, [row.big]), row);
    await session.commit();
    await session.release();
    await driver.close();
    await assert.rejects(session.query("SELECT 1"), ClosedError);
  }
  const [rows] = await promisePool.query("SELECT 1 AS one");
  assert.equal((rows as unknown[]).length, 1);
  await promisePool.end();
  await pool.promise().end();
});

serverTest("a pool that would count or write wrongly is refused", async (server) => {
  const refused: [object, RegExp][] = [
    [{ flags: ["-FOUND_ROWS"] }, /FOUND_ROWS/],
    [{ charset: "latin1" }, /utf8mb4/],
  ];
  for (const [options, message] of refused) {
    const pool = client.createPool({ uri: server, ...options });
    await assert.rejects(mysql({ pool }).open(), isDriverError("unusable", message));
    await pool.promise().end();
  }
});

serverTest("a connection of the caller's that dies leaves their pool", async (server) => {
  const pool = client.createPool({ uri: server, connectionLimit: 2 });
  const driver = mysql({ pool });
  await driver.open();
  for (let round = 0; round < 3; round++) {
    const session = await driver.session();
    await session.begin();
    await kill(driver, await connectionOf(session));
    await aborted(session.lost);
    await session.release();
    await query(driver, "SELECT 1");
  }
  const sessions = [await driver.session(), await driver.session()];
  for (const session of sessions) await session.begin();
  for (const session of sessions) await session.release();
  await driver.close();
  await pool.promise().end();
});
