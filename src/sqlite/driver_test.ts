import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { ClosedError } from "../errors.ts";
import {
  isDriverError,
  makeDatabase,
  query,
  rows,
  withDriver,
  withFolder,
} from "./driver_for_test.ts";
import { sqlite } from "./mod.ts";

Deno.test("what is no location, or an unknown option, is a TypeError", () => {
  for (const location of ["", undefined, null, 5]) {
    assert.throws(() => sqlite(location as unknown as string), TypeError, String(location));
  }
  assert.throws(
    () => sqlite("jobs.db", { synchronous: "off" as "full" }),
    /^TypeError: Cannot use "off" as synchronous: give "full" or "normal"$/,
  );
});

Deno.test("nothing is opened or created before open is called", async () => {
  await withFolder(async (folder) => {
    const driver = sqlite(`${folder}/jobs.db`);
    assert.equal(driver.name, "SQLite");
    assert.deepEqual(driver.forms, ["lease", "advisory lock"]);
    assert.deepEqual(Array.from(Deno.readDirSync(folder)), []);
    await driver.close();
  });
});

Deno.test("a file is created where there is none, in WAL mode", async () => {
  await withFolder(async (folder) => {
    await withDriver(sqlite(`${folder}/jobs.db`), async (driver) => {
      assert.deepEqual(await rows(driver, "PRAGMA journal_mode"), [{ journal_mode: "wal" }]);
      assert.deepEqual(await rows(driver, "PRAGMA synchronous"), [{ synchronous: 2n }]);
      assert.deepEqual(await rows(driver, "PRAGMA busy_timeout"), [{ timeout: 0n }]);
    });
    await withDriver(sqlite(`${folder}/jobs.db`, { synchronous: "normal" }), async (driver) => {
      assert.deepEqual(await rows(driver, "PRAGMA synchronous"), [{ synchronous: 1n }]);
    });
  });
});

Deno.test("a driver that is not open says so, and may be opened again after close", async () => {
  const driver = sqlite(":memory:");
  const notOpen = (error: unknown): true => {
    assert(error instanceof ClosedError);
    assert.match(error.message, /":memory:": it is not open/);
    return true;
  };
  await assert.rejects(driver.session(), notOpen);
  await driver.open();
  await query(driver, "CREATE TABLE notes (note)");
  await driver.close();
  await driver.close(); // closing twice is nothing
  await assert.rejects(driver.session(), notOpen);
  await driver.open();
  await assert.rejects(query(driver, "SELECT * FROM notes"), isDriverError("missing"));
  await driver.close();
});

Deno.test("a driver that is open is not opened again", async () => {
  await withDriver(sqlite(":memory:"), async (driver) => {
    await query(driver, "CREATE TABLE notes (note)");
    await assert.rejects(driver.open(), (error: Error) => {
      assert(error instanceof ClosedError);
      assert.match(error.message, /again: this driver has it open; give each broker a driver/);
      return true;
    });
    assert.deepEqual(await rows(driver, "SELECT * FROM notes"), [], "the first is undisturbed");
  });
});

Deno.test("a driver that is opened twice at once opens one database", async () => {
  const driver = sqlite(":memory:");
  const results = await Promise.allSettled([driver.open(), driver.open()]);
  await driver.close();
  assert.deepEqual(results.map(({ status }) => status), ["fulfilled", "rejected"]);
});

Deno.test("a driver that is closed while it opens is closed in the end", async () => {
  await withFolder(async (folder) => {
    const driver = sqlite(`${folder}/jobs.db`);
    const opening = driver.open();
    await driver.close();
    await Promise.allSettled([opening]);
    const session = await driver.session().catch(() => undefined);
    await driver.close();
    assert.equal(session, undefined, "the database is open though close was called last");
  });
});

Deno.test("a file that is no database is unusable", async () => {
  await withFolder(async (folder) => {
    const file = `${folder}/letter.txt`;
    await Deno.writeTextFile(file, "Dear reader, this is not a database. ".repeat(100));
    const driver = sqlite(file);
    const refused = isDriverError("unusable", /letter\.txt/, /not a database/, /check/);
    await assert.rejects(driver.open(), refused);
    await assert.rejects(driver.open(), refused, "a failed open may be tried again");
    await assert.rejects(driver.session(), ClosedError);
    assert.match(await Deno.readTextFile(file), /^Dear reader/);
    await Deno.remove(file);
    await withDriver(driver, async () => void assert.ok(await query(driver, "SELECT 1")));
  });
});

Deno.test("a folder that does not exist, and a folder itself, are unusable", async () => {
  await withFolder(async (folder) => {
    const absent = sqlite(`${folder}/absent/jobs.db`);
    await assert.rejects(absent.open(), isDriverError("unusable", /absent\/jobs\.db/, /folder/));
    await assert.rejects(sqlite(folder).open(), isDriverError("unusable", /check/));
  });
});

Deno.test("a file: URL opens its file", async () => {
  await withFolder(async (folder) => {
    const file = makeDatabase(`${folder}/jobs with space.db`);
    const url = pathToFileURL(file);
    for (const location of [url, url.href]) {
      await withDriver(sqlite(location), async (driver) => {
        assert.deepEqual(await rows(driver, "SELECT * FROM notes"), []);
      });
    }
    assert.deepEqual(
      Array.from(Deno.readDirSync(folder), ({ name }) => name),
      ["jobs with space.db"],
    );
  });
});

Deno.test("a file that may only be read is refused when it is opened", async () => {
  await withFolder(async (folder) => {
    const file = makeDatabase(`${folder}/jobs.db`);
    const url = `${pathToFileURL(file).href}?mode=ro`;
    for (const location of [url, new URL(url)]) {
      await assert.rejects(
        sqlite(location).open(),
        isDriverError("read-only", /mode=ro/, /let this process write the file and its folder/),
      );
    }
    await withDriver(sqlite(file), async () => {}); // neither left it changed or locked
  });
});
