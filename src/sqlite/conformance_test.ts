import { testDriver } from "../../testing/conformance/test_driver.ts";
import { BusyNeighbour } from "../../testing/conformance/busy_neighbour.ts";
import type { TestDatabase } from "../../testing/conformance/test_database.ts";
import { sqlite } from "./mod.ts";

testDriver("SQLite in memory", inMemory, {
  skip: {
    reason: "a database in memory has one connection",
    needs: ["connections", "processes"],
  },
});
testDriver("SQLite in a file", inFile);
testDriver("SQLite in a file that another process keeps writing", inBusyFile);

function inMemory(): Promise<TestDatabase> {
  return Promise.resolve({
    connect: () => sqlite(":memory:"),
    address: undefined,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
}

async function inFile(): Promise<TestDatabase> {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/suite.db`;
  return {
    connect: () => sqlite(path),
    address: `sqlite:${path}`,
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
