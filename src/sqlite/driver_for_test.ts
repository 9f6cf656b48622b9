import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { Driver, QueryResult, SqlRow, SqlValue } from "../driver/driver.ts";
import { DriverError, type DriverErrorKind } from "../errors.ts";

/** Runs a test with a folder of its own, which is removed afterwards. */
export async function withFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** A file that holds one empty table. */
export function makeDatabase(file: string): string {
  using database = new DatabaseSync(file);
  database.exec("CREATE TABLE notes (id INTEGER PRIMARY KEY, note)");
  return file;
}

/** Runs one statement in a session of its own. */
export async function query(
  driver: Driver,
  text: string,
  params: readonly SqlValue[] = [],
): Promise<QueryResult> {
  const session = await driver.session();
  try {
    return await session.query(text, params);
  } finally {
    await session.release();
  }
}

/** What a query gives, without the null prototypes. */
export async function rows(
  driver: Driver,
  text: string,
  params: readonly SqlValue[] = [],
): Promise<SqlRow[]> {
  return (await query(driver, text, params)).rows.map((row) => ({ ...row }));
}

/** Whether it is such an error, whose message matches all patterns; fails the test if not. */
export function isDriverError(
  kind: DriverErrorKind,
  ...patterns: RegExp[]
): (error: unknown) => true {
  return (error: unknown): true => {
    assert(error instanceof DriverError, String(error));
    assert.equal(error.kind, kind, error.message);
    for (const pattern of patterns) assert.match(error.message, pattern);
    return true;
  };
}

/** Runs a test with an open driver, which is closed afterwards. */
export async function withDriver<D extends Driver>(
  driver: D,
  test: (driver: D) => Promise<void>,
): Promise<void> {
  await driver.open();
  try {
    await test(driver);
  } finally {
    await driver.close();
  }
}
