import assert from "node:assert/strict";
import type { Driver, QueryResult, Session, SqlRow, SqlValue } from "../driver/driver.ts";
import { DriverError, type DriverErrorKind } from "../errors.ts";
import { mysql, type MysqlDriver, type MysqlOptions } from "./mod.ts";

const SERVERS = [["MariaDB", "HOLDFAST_TEST_MARIADB"], ["MySQL", "HOLDFAST_TEST_MYSQL"]] as const;

/** A test that runs with each server there is; where one is missing it is skipped, in print. */
export function serverTest(name: string, test: (server: string) => Promise<void>): void {
  for (const [title, variable] of SERVERS) {
    Deno.test(`${title}: ${name}`, async () => {
      const server = Deno.env.get(variable);
      if (server !== undefined) return await test(server);
      const reason = `${variable} is not set to the URL of a ${title} server`;
      if (Deno.env.get("CI") === "true") throw new Error(`Cannot test: ${reason}`);
      console.log(`skipped: ${reason}`);
    });
  }
}

/** Runs a test with an open driver of its own, which is closed afterwards. */
export async function withDriver(
  server: string | URL,
  options: MysqlOptions,
  test: (driver: MysqlDriver) => Promise<void>,
): Promise<void> {
  const driver = mysql(server, options);
  await driver.open();
  try {
    await test(driver);
  } finally {
    await driver.close();
  }
}

/** Runs a test with a table of its own. */
export async function withTable(
  driver: Driver,
  columns: string,
  test: (table: string) => Promise<void>,
): Promise<void> {
  const table = `holdfast_${crypto.randomUUID().replaceAll("-", "")}`;
  await query(driver, `CREATE TABLE ${table} (${columns}) DEFAULT CHARSET utf8mb4`);
  try {
    await test(table);
  } finally {
    await query(driver, `DROP TABLE ${table}`);
  }
}

/** Runs one statement on a session of its own. */
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

/** The first row of a statement. */
export async function firstRow(
  on: Driver | Session,
  text: string,
  params: readonly SqlValue[] = [],
): Promise<SqlRow> {
  const { rows: [row] } = "query" in on
    ? await on.query(text, params)
    : await query(on, text, params);
  assert(row !== undefined, text);
  return row;
}

/** The connection of a session, as the server numbers it. */
export async function connectionOf(session: Session): Promise<number> {
  return Number((await firstRow(session, "SELECT CONNECTION_ID() AS id")).id);
}

/** Ends a connection as an administrator does. */
export async function kill(driver: Driver, connection: number): Promise<void> {
  await query(driver, `KILL ${connection}`);
}

/** What the server says a connection is doing; empty where there is none. */
export async function activityOf(driver: Driver, connection: number): Promise<string> {
  const text = "SELECT state FROM information_schema.processlist WHERE id = ?";
  return String((await query(driver, text, [connection])).rows[0]?.state ?? "");
}

/** Checks what an error is, for `assert.rejects`. */
export function isDriverError(kind: DriverErrorKind, ...patterns: RegExp[]) {
  return (error: unknown): true => {
    assert(error instanceof DriverError, String(error));
    assert.equal(error.kind, kind, error.message);
    for (const pattern of patterns) assert.match(error.message, pattern);
    return true;
  };
}

/** Resolves once the signal has aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
}

/** Waits until this holds; rejects after some seconds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let left = 500; !(await condition()); left--) {
    assert(left > 0, `Waited in vain until ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
