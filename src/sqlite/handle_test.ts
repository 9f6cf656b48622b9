import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { DriverError } from "../errors.ts";
import {
  isDriverError,
  makeDatabase,
  query,
  rows,
  withDriver,
  withFolder,
} from "./driver_for_test.ts";
import { sqlite } from "./mod.ts";

Deno.test("a handle that may only read is refused when it is opened, and is left open", async () => {
  await withFolder(async (folder) => {
    const file = makeDatabase(`${folder}/jobs.db`);
    for (const mode of ["DELETE", "WAL"]) {
      {
        using database = new DatabaseSync(file);
        database.exec(`PRAGMA journal_mode = ${mode}`);
      }
      using handle = new DatabaseSync(file, { readOnly: true });
      await assert.rejects(sqlite({ handle }).open(), isDriverError("read-only"));
      assert.deepEqual(handle.prepare("SELECT * FROM notes").all(), []);
      assert.equal(handle.isTransaction, false, "a transaction is left open on the handle");
    }
  });
});

Deno.test("a handle that is closed is refused", async () => {
  const handle = new DatabaseSync(":memory:");
  handle.close();
  await assert.rejects(sqlite({ handle }).open(), (error: unknown) => {
    assert(error instanceof DriverError, String(error));
    assert.match(error.message, /not open/);
    return true;
  });
});

Deno.test("a handle is not closed by the driver, and keeps its own settings", async () => {
  await withFolder(async (folder) => {
    using handle = new DatabaseSync(makeDatabase(`${folder}/jobs.db`));
    await withDriver(sqlite({ handle }), async (driver) => {
      await query(driver, "INSERT INTO notes (note) VALUES ('ours')");
      handle.exec("INSERT INTO notes (note) VALUES ('theirs')");
      assert.deepEqual((await rows(driver, "SELECT note FROM notes")).map(({ note }) => note), [
        "ours",
        "theirs",
      ]);
    });
    assert.equal(handle.isOpen, true);
    assert.equal(handle.prepare("PRAGMA journal_mode").get()!.journal_mode, "delete");
    assert.equal(handle.prepare("SELECT count(*) AS n FROM notes").get()!.n, 2);
  });
});

Deno.test("a transaction of the handle's owner is waited for", async () => {
  for (const end of ["COMMIT", "ROLLBACK"]) {
    using handle = new DatabaseSync(":memory:");
    handle.exec("CREATE TABLE notes (note)");
    await withDriver(sqlite({ handle }), async (driver) => {
      handle.exec("BEGIN; INSERT INTO notes VALUES ('theirs')");
      let done = false;
      const single = query(driver, "INSERT INTO notes VALUES ('single')").then(() => done = true);
      const session = await driver.session();
      const transaction = (async () => {
        await session.begin();
        done = true;
        await session.query("INSERT INTO notes VALUES ('transaction')");
        await session.commit();
        await session.release();
      })();
      await new Promise((resolve) => setTimeout(resolve, 60));
      assert.equal(done, false);
      handle.exec(end);
      await Promise.all([single, transaction]);
      const notes = handle.prepare("SELECT note FROM notes").all().map(({ note }) => note);
      assert.deepEqual(
        new Set(notes),
        new Set(["single", "transaction", ...end === "COMMIT" ? ["theirs"] : []]),
      );
    });
  }
});

Deno.test("a handle is opened after the transaction that its owner has open on it", async () => {
  using handle = new DatabaseSync(":memory:");
  handle.exec("CREATE TABLE notes (note); BEGIN; INSERT INTO notes VALUES ('theirs')");
  const driver = sqlite({ handle });
  let open = false;
  const opening = driver.open().then(() => open = true);
  await new Promise((resolve) => setTimeout(resolve, 60));
  assert.equal(open, false);
  handle.exec("COMMIT");
  await opening;
  await driver.close();
  assert.equal(handle.prepare("SELECT count(*) AS n FROM notes").get()!.n, 1);
});

Deno.test("a handle outside of WAL waits for a reader in another process to commit", async () => {
  await withFolder(async (folder) => {
    const file = makeDatabase(`${folder}/jobs.db`);
    using reader = new DatabaseSync(file, { timeout: 0 });
    reader.exec("BEGIN; SELECT * FROM notes");
    reader.prepare("SELECT * FROM notes").all();
    using handle = new DatabaseSync(file);
    const driver = sqlite({ handle });
    await driver.open();
    let ticks = 0;
    const interval = setInterval(() => {
      if (++ticks === 20) reader.exec("COMMIT");
    }, 10);
    try {
      const session = await driver.session();
      await session.begin();
      await session.query("INSERT INTO notes (note) VALUES ('ours')");
      await session.commit();
      await session.release();
      assert(ticks >= 20, `it ended after ${ticks} turns of the event loop`);
    } finally {
      clearInterval(interval);
    }
    await driver.close();
    assert.equal(reader.prepare("SELECT count(*) AS n FROM notes").get()!.n, 1);
  });
});

Deno.test("the owner of a handle may write between the turns of the event loop", async () => {
  using handle = new DatabaseSync(":memory:");
  handle.exec("CREATE TABLE notes (note)");
  await withDriver(sqlite({ handle }), async (driver) => {
    const ours = (async () => {
      for (let n = 0; n < 50; n++) {
        const session = await driver.session();
        await session.begin();
        await session.query("INSERT INTO notes VALUES ('ours')");
        await session.commit();
        await session.release();
        await new Promise((resolve) => setTimeout(resolve, 0));
      }
    })();
    for (let n = 0; n < 50; n++) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      handle.exec("BEGIN; INSERT INTO notes VALUES ('theirs'); ROLLBACK");
    }
    await ours;
    assert.equal(handle.prepare("SELECT count(*) AS n FROM notes").get()!.n, 50);
  });
});
