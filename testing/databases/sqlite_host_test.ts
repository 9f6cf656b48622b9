import assert from "node:assert/strict";
import { run, SQLITE } from "./databases_for_test.ts";
import { TestDatabases } from "./test_databases.ts";

const DRIVER = new URL("../../src/sqlite/mod.ts", import.meta.url);

Deno.test("SQLite: the log that a killed process leaves is no open connection", async () => {
  const databases = new TestDatabases(SQLITE_OPTIONS);
  await using database = await databases.create();
  await run(database.connect(), "CREATE TABLE numbers (n INTEGER)");
  const { code } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", KILLED, database.url],
    stdin: "null",
    stdout: "inherit",
    stderr: "inherit",
  }).output();
  assert.notEqual(code, 0);
  assert(await Deno.stat(`${database.url}-wal`));
});

const SQLITE_OPTIONS = { url: SQLITE.url, connect: SQLITE.connect };
const KILLED = `
import { sqlite } from "${DRIVER}";
const driver = sqlite(Deno.args[0]);
await driver.open();
const session = await driver.session();
await session.query("INSERT INTO numbers VALUES (1)");
Deno.kill(Deno.pid, "SIGKILL");
`;
