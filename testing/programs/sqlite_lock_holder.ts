import { sqlite } from "../../src/sqlite/mod.ts";

/** Enables the locks of a file, says so, and lives until it is killed. */
const driver = sqlite(Deno.args[0] ?? "");
await driver.open();
await driver.enableLocks();
console.log("has locks");
await new Promise((resolve) => setTimeout(resolve, 3_600_000));
