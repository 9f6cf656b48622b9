import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import type { Driver, SqlRow } from "../../src/driver/driver.ts";
import { mysql } from "../../src/mysql/mod.ts";
import { postgres } from "../../src/postgres/mod.ts";
import { sqlite } from "../../src/sqlite/mod.ts";

/** What the tests need of a database. */
export interface TestedDatabase {
  readonly title: string;
  readonly url: string;
  readonly connect: (url: string) => Driver;
  /** Every database that is there, whoever made it. */
  names(): Promise<readonly string[]>;
}

/** A test that runs on SQLite and on each server there is; a missing one is skipped, in print. */
export function onEachDatabase(name: string, test: (on: TestedDatabase) => Promise<void>): void {
  Deno.test(`SQLite: ${name}`, () => test(SQLITE));
  onEachServer(name, test);
}

/** A test that runs on each server there is, or on one; a missing one is skipped, in print. */
export function onEachServer(
  name: string,
  test: (on: TestedDatabase) => Promise<void>,
  titles: readonly string[] = SERVERS.map(({ title }) => title),
): void {
  for (const { title, variable, connect, list } of SERVERS) {
    if (!titles.includes(title)) continue;
    Deno.test(`${title}: ${name}`, async () => {
      const url = Deno.env.get(variable);
      if (url !== undefined) {
        const names = async () => (await run(connect(url), list)).map((row) => String(row.name));
        return await test({ title, url, connect, names });
      }
      const reason = `${variable} is not set to the URL of a ${title} server`;
      if (Deno.env.get("CI") === "true") throw new Error(`Cannot test: ${reason}`);
      console.log(`skipped: ${reason}`);
    });
  }
}

/** Runs statements one by one with a driver that is not open, and returns the rows of the last. */
export async function run(driver: Driver, ...texts: string[]): Promise<readonly SqlRow[]> {
  await driver.open();
  try {
    return await runOpen(driver, ...texts);
  } finally {
    await driver.close();
  }
}

/** As {@link run}, with an open driver, which stays open. */
export async function runOpen(driver: Driver, ...texts: string[]): Promise<readonly SqlRow[]> {
  const session = await driver.session();
  try {
    let rows: readonly SqlRow[] = [];
    for (const text of texts) ({ rows } = await session.query(text));
    return rows;
  } finally {
    await session.release();
  }
}

/** SQLite, which is always there. */
export const SQLITE: TestedDatabase = {
  title: "SQLite",
  url: ":memory:",
  connect: (url) => sqlite(url),
  names: () => readdir(tmpdir()),
};

const SCHEMATA = "SELECT schema_name AS name FROM information_schema.schemata";
const SERVERS = [
  {
    title: "Postgres",
    variable: "HOLDFAST_TEST_POSTGRES",
    connect: (url: string): Driver => postgres(url),
    list: "SELECT datname AS name FROM pg_database",
  },
  {
    title: "MariaDB",
    variable: "HOLDFAST_TEST_MARIADB",
    connect: (url: string): Driver => mysql(url),
    list: SCHEMATA,
  },
  {
    title: "MySQL",
    variable: "HOLDFAST_TEST_MYSQL",
    connect: (url: string): Driver => mysql(url),
    list: SCHEMATA,
  },
];
