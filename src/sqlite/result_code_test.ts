import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { DriverError } from "../errors.ts";
import { classify } from "./result_code.ts";

/** The error that this throws. */
function errorOf(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  assert.fail("it did not throw");
}

async function withFolder(test: (folder: string) => void): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** The kinds of the error of a prepared statement and of `exec`, which gives no code. */
function kindsOf(database: DatabaseSync, sql: string): string[] {
  return [
    classify(errorOf(() => database.prepare(sql).all())),
    classify(errorOf(() => database.exec(sql))),
  ];
}

Deno.test("errors of node:sqlite mean what they mean, with a code and without", async () => {
  await withFolder((folder) => {
    const file = `${folder}/jobs.db`;
    using database = new DatabaseSync(file);
    database.exec("CREATE TABLE notes (note TEXT NOT NULL UNIQUE); INSERT INTO notes VALUES ('a')");
    const both = (kind: string) => [kind, kind];
    const insert = "INSERT INTO notes VALUES";
    assert.deepEqual(kindsOf(database, `${insert} ('a')`), both("constraint"));
    assert.deepEqual(kindsOf(database, `${insert} (NULL)`), both("constraint"));
    assert.deepEqual(kindsOf(database, "SELECT * FROM absent"), both("missing"));
    assert.deepEqual(kindsOf(database, "SELECT absent FROM notes"), both("missing"));
    assert.deepEqual(kindsOf(database, "SELEC 1"), both("other"));

    using reader = new DatabaseSync(file, { readOnly: true });
    assert.deepEqual(kindsOf(reader, `${insert} ('b')`), both("read-only"));

    using writer = new DatabaseSync(file, { timeout: 0 });
    writer.exec("BEGIN IMMEDIATE");
    using other = new DatabaseSync(file, { timeout: 0 });
    assert.deepEqual(kindsOf(other, `${insert} ('b')`), both("conflict"));
    assert.deepEqual(kindsOf(other, "BEGIN IMMEDIATE"), both("conflict"));
    writer.exec("ROLLBACK");
  });
});

Deno.test("a file that is none, is absent or is damaged is unusable", async () => {
  await withFolder((folder) => {
    assert.equal(
      classify(errorOf(() => new DatabaseSync(`${folder}/absent/jobs.db`))),
      "unusable",
    );
    Deno.writeTextFileSync(`${folder}/letter.txt`, "Dear reader, ".repeat(500));
    using letter = new DatabaseSync(`${folder}/letter.txt`);
    assert.deepEqual(kindsOf(letter, "SELECT * FROM sqlite_schema"), ["unusable", "unusable"]);
  });
});

Deno.test("a database that is closed is disconnected", () => {
  const database = new DatabaseSync(":memory:");
  database.close();
  assert.equal(classify(errorOf(() => database.prepare("SELECT 1"))), "disconnected");
});

Deno.test("extended codes count as their primary ones, in both libraries' fields", () => {
  const kinds: [number, string][] = [
    [5, "conflict"], // SQLITE_BUSY
    [261, "conflict"], // SQLITE_BUSY_RECOVERY
    [517, "conflict"], // SQLITE_BUSY_SNAPSHOT
    [6, "conflict"], // SQLITE_LOCKED
    [262, "conflict"], // SQLITE_LOCKED_SHAREDCACHE
    [8, "read-only"], // SQLITE_READONLY
    [1032, "read-only"], // SQLITE_READONLY_DBMOVED
    [11, "unusable"], // SQLITE_CORRUPT
    [14, "unusable"], // SQLITE_CANTOPEN
    [26, "unusable"], // SQLITE_NOTADB
    [19, "constraint"], // SQLITE_CONSTRAINT
    [2067, "constraint"], // SQLITE_CONSTRAINT_UNIQUE
    [10, "other"], // SQLITE_IOERR
    [13, "other"], // SQLITE_FULL
    [21, "other"], // SQLITE_MISUSE
  ];
  for (const [code, kind] of kinds) {
    assert.equal(
      classify(Object.assign(new Error("x"), { errcode: code })),
      kind,
      `errcode ${code}`,
    );
    assert.equal(classify(Object.assign(new Error("x"), { code })), kind, `code ${code}`);
    const nodeError = Object.assign(new Error("x"), { code: "ERR_SQLITE_ERROR", errcode: code });
    assert.equal(classify(nodeError), kind, `node's ${code}`);
  }
});

Deno.test("an error without a code is told by its message", () => {
  const kinds: [string, string][] = [
    ["database is locked", "conflict"],
    ["database table is locked", "conflict"],
    ["database schema is locked: main", "conflict"],
    ["attempt to write a readonly database", "read-only"],
    ["file is not a database", "unusable"],
    ["unable to open database file", "unusable"],
    ["database disk image is malformed", "unusable"],
    ["UNIQUE constraint failed: jobs.id", "constraint"],
    ["no such table: jobs", "missing"],
    ["no such column: id", "missing"],
    ["Database is closed", "disconnected"],
    ["something else", "other"],
  ];
  for (const [message, kind] of kinds) {
    assert.equal(classify(new Error(message)), kind, message);
    const generic = Object.assign(new Error(message), { errcode: 1 }); // SQLITE_ERROR
    assert.equal(classify(generic), kind, `${message}, code 1`);
  }
});

Deno.test("an INSERT into a column that is absent is told as missing too", () => {
  using database = new DatabaseSync(":memory:");
  database.exec("CREATE TABLE notes (note)");
  assert.deepEqual(kindsOf(database, "INSERT INTO notes (body) VALUES (1)"), [
    "missing",
    "missing",
  ]);
});

Deno.test("an error that is classified already, and what is no error, is classified too", () => {
  assert.equal(classify(new DriverError("disconnected", "Gone")), "disconnected");
  for (const value of [undefined, null, "text", 5, {}]) assert.equal(classify(value), "other");
  assert.equal(classify("database is locked"), "conflict");
});
