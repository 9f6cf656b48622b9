import type { Driver } from "@holdfast/inbox/driver";
import { mysql } from "@holdfast/inbox/mysql";
import { postgres } from "@holdfast/inbox/postgres";
import { sqlite } from "@holdfast/inbox/sqlite";
import { TestDatabases } from "@holdfast/inbox/testing";

/** The database of one test. */
export interface Database {
  /** A driver for it; a second one is as that of a second process. In memory there is only one. */
  connect(): Driver;
}

/**
 * A test that runs on SQLite in memory, and on each server whose variable is set, there in a database
 * of its own.
 */
export function onEachDatabase(name: string, test: (database: Database) => Promise<void>): void {
  Deno.test(`SQLite: ${name}`, () => {
    const driver = sqlite(":memory:");
    return test({ connect: () => driver });
  });
  for (const [title, { variable, connect }] of Object.entries(SERVERS)) {
    const url = Deno.env.get(variable);
    Deno.test({
      name: `${title}: ${name}`,
      ignore: url === undefined,
      async fn() {
        await using database = await new TestDatabases<Driver>({ url: url!, connect }).create();
        await test(database);
      },
    });
  }
}

const SERVERS = {
  Postgres: { variable: "HOLDFAST_TEST_POSTGRES", connect: postgres },
  MariaDB: { variable: "HOLDFAST_TEST_MARIADB", connect: mysql },
  MySQL: { variable: "HOLDFAST_TEST_MYSQL", connect: mysql },
} as const;
