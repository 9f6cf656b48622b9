import { DatabaseSync } from "node:sqlite";
import { type Skip, testDriver } from "../../testing/conformance/test_driver.ts";
import { BusyNeighbour } from "../../testing/conformance/busy_neighbour.ts";
import type { TestDatabase, TestSql } from "../../testing/conformance/test_database.ts";
import { dbSqlite, sqlite, sqliteTx, type TransactionalDelivery } from "./mod.ts";

const SQL: TestSql = {
  time: (time) => String(time),
  later: (seconds) => `locked_until + ${seconds * 1000}`,
};
const oneConnection: Skip = {
  reason: "there is one connection to a database in memory, no server and no row lock",
  needs: ["connections", "processes", "row locks", "a server"],
};
const noServer: Skip = {
  reason: "SQLite has no server, and no row locks",
  needs: ["row locks", "a server"],
};
testDriver("SQLite in memory", inMemory, { skip: oneConnection });
testDriver("SQLite through a handle of node:sqlite", throughHandle, { skip: oneConnection });
testDriver("SQLite in a file", () => inFile(), { skip: noServer });
testDriver("SQLite in a file that another process keeps writing", inBusyFile, {
  skip: noServer,
});
if (await dbSqliteLoads()) {
  testDriver("SQLite through @db/sqlite", inFileOfDbSqlite, { skip: noServer });
}

function inMemory(): Promise<TestDatabase> {
  return Promise.resolve({
    connect: () => sqlite(":memory:"),
    address: undefined,
    write,
    locksRows: false,
    returnsIds: true,
    sql: SQL,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
}

function throughHandle(): Promise<TestDatabase> {
  const handle = new DatabaseSync(":memory:");
  return Promise.resolve({
    connect: () => sqlite({ handle }),
    address: undefined,
    write,
    locksRows: false,
    returnsIds: true,
    sql: SQL,
    [Symbol.asyncDispose]: () => Promise.resolve(handle.close()),
  });
}

function inFileOfDbSqlite(): Promise<TestDatabase> {
  return inFile(dbSqlite);
}

async function inFile(open: typeof dbSqlite = sqlite): Promise<TestDatabase> {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/suite.db`;
  return {
    connect: () => open(path),
    address: `sqlite:${path}`,
    write,
    locksRows: false,
    returnsIds: true,
    sql: SQL,
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

async function inBusyFile(): Promise<TestDatabase> {
  const database = await inFile();
  const neighbour = await BusyNeighbour.start(database.address!.slice("sqlite:".length));
  return {
    ...database,
    async [Symbol.asyncDispose](): Promise<void> {
      await neighbour[Symbol.asyncDispose]();
      await database[Symbol.asyncDispose]();
    },
  };
}

async function write(delivery: TransactionalDelivery, text: string): Promise<void> {
  (await sqliteTx(delivery)).prepare(text).run();
}

/** `jsr:@db/sqlite` needs JSR, and a library that it downloads. */
async function dbSqliteLoads(): Promise<boolean> {
  try {
    const driver = dbSqlite(":memory:");
    await driver.open();
    await driver.close();
    return true;
  } catch (error) {
    console.log(`skipped: SQLite through @db/sqlite (${error})`);
    return false;
  }
}
