import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { Driver, QueryResult, SqlValue } from "../driver/driver.ts";
import { ClosedError, DriverError, type DriverErrorKind } from "../errors.ts";
import { sqlite } from "./mod.ts";

async function withFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** A file that holds one empty table. */
function makeDatabase(file: string): string {
  using database = new DatabaseSync(file);
  database.exec("CREATE TABLE notes (id INTEGER PRIMARY KEY, note)");
  return file;
}

async function query(
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

/** What a query gives, without the null prototypes. */
async function rows(driver: Driver, text: string, params: readonly SqlValue[] = []) {
  return (await query(driver, text, params)).rows.map((row) => ({ ...row }));
}

function isDriverError(kind: DriverErrorKind, ...patterns: RegExp[]) {
  return (error: unknown): true => {
    assert(error instanceof DriverError, String(error));
    assert.equal(error.kind, kind, error.message);
    for (const pattern of patterns) assert.match(error.message, pattern);
    return true;
  };
}

/** Runs a test with an open driver, which is closed afterwards. */
async function withDriver<D extends Driver>(
  driver: D,
  test: (driver: D) => Promise<void>,
): Promise<void> {
  await driver.open();
  try {
    await test(driver);
  } finally {
    await driver.close();
  }
}

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

Deno.test("a transaction that is rolled back, or only released, leaves nothing", async () => {
  await withDriver(sqlite(":memory:"), async (driver) => {
    await query(driver, "CREATE TABLE notes (note)");
    for (const end of ["rollback", "release"] as const) {
      const session = await driver.session();
      await session.begin();
      await session.query("INSERT INTO notes VALUES ('gone')");
      assert.equal((await session.query("SELECT * FROM notes")).rows.length, 1);
      await session[end]();
      await session.release();
      assert.deepEqual(await rows(driver, "SELECT * FROM notes"), [], end);
    }
    const session = await driver.session();
    await session.begin();
    await session.query("INSERT INTO notes VALUES ('kept')");
    await session.commit();
    await session.release();
    assert.deepEqual(await rows(driver, "SELECT * FROM notes"), [{ note: "kept" }]);
  });
});

Deno.test("a statement that fails leaves its transaction to be rolled back", async () => {
  await withDriver(sqlite(":memory:"), async (driver) => {
    await query(driver, "CREATE TABLE notes (note UNIQUE)");
    const session = await driver.session();
    await session.begin();
    await session.query("INSERT INTO notes VALUES ('a')");
    await assert.rejects(
      session.query("INSERT INTO notes VALUES ('a')"),
      isDriverError("constraint", /UNIQUE constraint failed/, /the statement was: INSERT/),
    );
    await session.release();
    assert.deepEqual(await rows(driver, "SELECT * FROM notes"), []);
  });
});

Deno.test("statements for many sets of parameters are all carried out, or none", async () => {
  await withDriver(sqlite(":memory:"), async (driver) => {
    await query(driver, "CREATE TABLE notes (note UNIQUE)");
    const insert = "INSERT INTO notes VALUES (?) RETURNING note";
    const session = await driver.session();
    await assert.rejects(
      session.queryEach(insert, [["a"], ["b"], ["a"]]),
      isDriverError("constraint"),
    );
    assert.deepEqual(await rows(driver, "SELECT * FROM notes"), []);
    const results = await session.queryEach(insert, [["a"], ["b"]]);
    assert.deepEqual(results.map(({ rows }) => rows.map(({ note }) => note)), [["a"], ["b"]]);
    assert.deepEqual(await session.queryEach(insert, []), []);
    await session.release();
    assert.equal((await query(driver, "DELETE FROM notes")).changes, 2);
  });
});

Deno.test("a transaction keeps other sessions of the driver out until it ends", async () => {
  await withDriver(sqlite(":memory:"), async (driver) => {
    await query(driver, "CREATE TABLE notes (note)");
    const session = await driver.session();
    await session.begin();
    await session.query("INSERT INTO notes VALUES ('a')");
    const order: string[] = [];
    const others = ["b", "c"].map(async (note) => {
      await query(driver, "INSERT INTO notes VALUES (?)", [note]);
      order.push(note);
    });
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.deepEqual(order, []);
    await session.rollback();
    await session.release();
    await Promise.all(others);
    assert.deepEqual(order, ["b", "c"]);
    assert.deepEqual(await rows(driver, "SELECT * FROM notes"), [{ note: "b" }, { note: "c" }]);
  });
});

Deno.test("values come back exactly as they were written", async () => {
  await withDriver(sqlite(":memory:"), async (driver) => {
    await query(driver, "CREATE TABLE notes (note)");
    const values: SqlValue[] = [
      null,
      0n,
      -1n,
      9007199254740993n,
      9223372036854775807n,
      -9223372036854775808n,
      "",
      "007",
      "Grüße 日本 🙂",
      'O\'Brien "quoted"',
      0.1,
      new Uint8Array([0, 255, 7]),
      new Uint8Array(0),
      new Uint8Array([1, 2, 3, 4]).subarray(1, 3),
    ];
    for (const value of values) {
      const inserted = await rows(driver, "INSERT INTO notes VALUES (?) RETURNING note", [value]);
      const place = value instanceof Uint8Array ? `${value.length} bytes` : JSON.stringify(
        value,
        (_, each) => typeof each === "bigint" ? `${each}n` : each,
      );
      assert.deepEqual(inserted, [{ note: value }], `inserted ${place}`);
      assert.deepEqual(await rows(driver, "SELECT note FROM notes"), [{ note: value }], place);
      await query(driver, "DELETE FROM notes");
    }
  });
});

Deno.test("bytes as first parameter are a value, not names of parameters", async () => {
  await withDriver(sqlite(":memory:"), async (driver) => {
    await query(driver, "CREATE TABLE notes (note BLOB, number INTEGER)");
    const bytes = new Uint8Array([1, 2, 3]);
    const insert = "INSERT INTO notes VALUES (?, ?)";
    assert.equal((await query(driver, insert, [bytes, 5n])).changes, 1);
    const session = await driver.session();
    await session.queryEach(insert, [[bytes, 6n], [bytes, 7n]]);
    await session.release();
    assert.deepEqual(await rows(driver, "SELECT number FROM notes WHERE note = ?", [bytes]), [
      { number: 5n },
      { number: 6n },
      { number: 7n },
    ]);
  });
});

Deno.test("what a statement needs and is absent, is classified as missing", async () => {
  await withDriver(sqlite(":memory:"), async (driver) => {
    await query(driver, "CREATE TABLE notes (note)");
    for (const text of ["SELECT * FROM absent", "SELECT absent FROM notes"]) {
      await assert.rejects(query(driver, text), (error: unknown) => {
        assert.equal(driver.classify(error), "missing");
        return isDriverError("missing", /no such/)(error);
      });
    }
    await assert.rejects(query(driver, "SELEC 1"), isDriverError("other", /syntax error/));
  });
});

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
