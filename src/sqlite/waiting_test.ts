import assert from "node:assert/strict";
import { makeDatabase, query, rows, withDriver, withFolder } from "./driver_for_test.ts";
import { sqlite } from "./mod.ts";

Deno.test("two drivers on one file in one process do not meet as BUSY", async () => {
  await withFolder(async (folder) => {
    const file = makeDatabase(`${folder}/jobs.db`);
    await Deno.symlink(file, `${folder}/link.db`);
    await withDriver(sqlite(file), async (one) => {
      await withDriver(sqlite(`${folder}/link.db`), async (other) => {
        const drivers = [one, other];
        await Promise.all(Array.from({ length: 200 }, async (_, index) => {
          const session = await drivers[index % 2]!.session();
          await session.begin();
          const { rows } = await session.query("SELECT count(*) AS n FROM notes");
          await session.query("INSERT INTO notes (note) VALUES (?)", [rows[0]!.n!]);
          await session.commit();
          await session.release();
        }));
        assert.deepEqual(
          await rows(one, "SELECT count(*) AS n, count(DISTINCT note) AS d FROM notes"),
          [{ n: 200n, d: 200n }],
        );
      });
      await query(one, "INSERT INTO notes (note) VALUES ('after the other is closed')");
    });
  });
});

Deno.test("a driver that is closed inside a transaction lets others at the file", async () => {
  await withFolder(async (folder) => {
    const file = makeDatabase(`${folder}/jobs.db`);
    await withDriver(sqlite(file), async (other) => {
      const driver = sqlite(file);
      await driver.open();
      const session = await driver.session();
      await session.begin();
      await session.query("INSERT INTO notes (note) VALUES ('lost')");
      await driver.close();
      await session.release();
      assert.deepEqual(await rows(other, "SELECT note FROM notes"), []);
      await query(other, "INSERT INTO notes (note) VALUES ('kept')");
    });
  });
});

/** Another process that holds the write lock until it is told to commit. */
async function holdLock(file: string): Promise<{ commit: () => Promise<void> }> {
  const script = `
    const { DatabaseSync } = await import("node:sqlite");
    const database = new DatabaseSync(${JSON.stringify(file)});
    database.exec("BEGIN IMMEDIATE; INSERT INTO notes (note) VALUES ('theirs')");
    console.log("held");
    for await (const _ of Deno.stdin.readable);
    database.exec("COMMIT");
    database.close();
  `;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["eval", "--no-config", script],
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  assert.match(new TextDecoder().decode(value), /held/);
  return {
    commit: async () => {
      await child.stdin.close();
      while (!(await reader.read()).done);
      assert.equal((await child.status).code, 0);
    },
  };
}

/** Runs something that waits for another process, which commits after 50 turns of the event loop. */
async function whileLocked(file: string, work: () => Promise<unknown>): Promise<void> {
  const { commit } = await holdLock(file);
  let ticks = 0;
  let ended: Promise<void> | undefined;
  let done = false;
  const interval = setInterval(() => {
    if (++ticks < 50) return assert(!done, "it did not wait");
    ended ??= commit();
  }, 10);
  try {
    await work();
    done = true;
    assert(ticks >= 50, `it ended after ${ticks} turns of the event loop`);
  } finally {
    clearInterval(interval);
    await (ended ?? commit());
  }
}

Deno.test("a write waits for another process without blocking the event loop", async () => {
  await withFolder(async (folder) => {
    const file = makeDatabase(`${folder}/jobs.db`);
    await withDriver(sqlite(file), async (driver) => {
      await whileLocked(file, () => query(driver, "INSERT INTO notes (note) VALUES ('ours')"));
      assert.deepEqual(await rows(driver, "SELECT note FROM notes"), [
        { note: "theirs" },
        { note: "ours" },
      ]);
    });
  });
});

Deno.test("a transaction waits for another process without blocking the event loop", async () => {
  await withFolder(async (folder) => {
    const file = makeDatabase(`${folder}/jobs.db`);
    await withDriver(sqlite(file), async (driver) => {
      await whileLocked(file, async () => {
        const session = await driver.session();
        await session.begin();
        const { rows } = await session.query("SELECT note FROM notes");
        assert.equal(rows[0]?.note, "theirs", "it begins after the other has committed");
        await session.query("INSERT INTO notes (note) VALUES ('ours')");
        await session.commit();
        await session.release();
      });
    });
  });
});

Deno.test("opening waits for another process, also where the file is not in WAL mode yet", async () => {
  await withFolder(async (folder) => {
    const file = makeDatabase(`${folder}/jobs.db`);
    const driver = sqlite(file);
    await whileLocked(file, () => driver.open());
    assert.deepEqual(await rows(driver, "PRAGMA journal_mode"), [{ journal_mode: "wal" }]);
    await driver.close();
  });
});

Deno.test("a read does not wait for another process that writes", async () => {
  await withFolder(async (folder) => {
    const file = makeDatabase(`${folder}/jobs.db`);
    await withDriver(sqlite(file), async (driver) => {
      const { commit } = await holdLock(file);
      try {
        assert.deepEqual(await rows(driver, "SELECT note FROM notes"), []);
      } finally {
        await commit();
      }
    });
  });
});
