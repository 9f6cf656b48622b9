import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { App } from "../app.ts";
import { Broker } from "../broker.ts";
import type { TableDescription, TableFacts } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import { bind } from "../driver/statement.ts";
import { SchemaError } from "../errors.ts";
import { inbox } from "../inbox.ts";
import { text } from "../text.ts";
import { sqlite } from "./mod.ts";
import { facts, inspect } from "./table_facts.ts";

function describe(options: Partial<TableDescription> = {}): TableDescription {
  return {
    table: "jobs",
    form: "lease",
    id: { column: "id", generatedBy: "database" },
    payload: { column: "payload", storage: "text" },
    attempt: "attempt",
    lockedUntil: "locked_until",
    ...options,
  };
}

const BY_SERVICE = { column: "id", generatedBy: "service" } as const;

/** What is said of the described table in a database that was made by this SQL. */
function factsOf(sql: string, options: Partial<TableDescription> = {}): TableFacts {
  using database = new DatabaseSync(":memory:");
  database.exec(sql);
  const statement = inspect(describe(options));
  const prepared = database.prepare(statement.text);
  prepared.setReadBigInts(true);
  return facts(describe(options), prepared.all(...bind(statement, undefined)) as SqlRow[]);
}

/** The problems, each as `column: problem`. */
function problemsOf(sql: string, options: Partial<TableDescription> = {}): string[] {
  const { problems } = factsOf(sql, options);
  for (const { table, fix } of problems) {
    assert.equal(table, options.table ?? "jobs");
    assert.notEqual(fix, "");
  }
  return problems.map(({ column, problem }) =>
    column === undefined ? problem : `${column}: ${problem}`
  );
}

/** A table that is as described but for what is given. */
function table(
  { id = "id INTEGER PRIMARY KEY AUTOINCREMENT", payload = "payload TEXT", rest = "" } = {},
  attempt = "attempt INTEGER",
  lockedUntil = "locked_until INTEGER",
): string {
  return `CREATE TABLE jobs (${[id, payload, attempt, lockedUntil].join(", ")})${rest}`;
}

const NO_AUTOINCREMENT =
  "id: the id lacks AUTOINCREMENT, so SQLite gives a deleted row's id to a new row";

Deno.test("a table as described has no problem, and its columns have their types", () => {
  const { columns, problems } = factsOf(table());
  assert.deepEqual(problems, []);
  assert.deepEqual(Object.fromEntries(columns), {
    id: "INTEGER",
    payload: "TEXT",
    attempt: "INTEGER",
    locked_until: "INTEGER",
  });
});

Deno.test("a table that is missing is one problem, and its fix is the DDL", () => {
  const { columns, problems } = factsOf("");
  assert.equal(columns.size, 0);
  assert.equal(problems.length, 1);
  const [{ table, column, problem, fix }] = problems as [typeof problems[number]];
  assert.deepEqual({ table, column, problem }, {
    table: "jobs",
    column: undefined,
    problem: "the table does not exist",
  });
  assert.match(fix, /broker\.createTables/);
  const sql = fix.slice(fix.indexOf("CREATE TABLE"));
  assert.deepEqual(problemsOf(sql), [], "the DDL in the fix makes the table as described");
});

Deno.test("a table of a schema that is not attached is a missing table", async () => {
  const jobs = inbox("archive.jobs", { id: "id", lockedUntil: "until", payload: text("payload") });
  const broker = new Broker(sqlite(":memory:")).include(jobs.queue().subscribe(() => {}));
  await assert.rejects(new App({ name: "app" }).withBroker(broker).start(), (error: unknown) => {
    assert(error instanceof SchemaError);
    assert.deepEqual(error.problems.map(({ problem }) => problem), ["the table does not exist"]);
    return true;
  });
});

Deno.test("a table of another schema is not taken for it", () => {
  const attached = `ATTACH ':memory:' AS archive; ${table().replace("jobs", "archive.jobs")}`;
  assert.deepEqual(problemsOf(attached, { table: "archive.jobs" }), []);
  assert.deepEqual(problemsOf(attached), ["the table does not exist"]);
  assert.deepEqual(problemsOf(`${attached}; ${table()}`), []);
  assert.deepEqual(problemsOf(table().replace("TABLE", "TEMP TABLE"), { table: "temp.jobs" }), []);
});

Deno.test("every column that is missing is a problem with the SQL that adds it", () => {
  const { problems } = factsOf("CREATE TABLE jobs (id INTEGER PRIMARY KEY AUTOINCREMENT)");
  assert.deepEqual(problems.map(({ column, problem }) => [column, problem]), [
    ["payload", "the column does not exist"],
    ["attempt", "the column does not exist"],
    ["locked_until", "the column does not exist"],
  ]);
  const fixes = problems.map(({ fix }) => fix.slice(fix.indexOf("ALTER TABLE")));
  assert.deepEqual(fixes, [
    'ALTER TABLE "jobs" ADD COLUMN "payload" TEXT',
    'ALTER TABLE "jobs" ADD COLUMN "attempt" INTEGER DEFAULT 1',
    'ALTER TABLE "jobs" ADD COLUMN "locked_until" INTEGER',
  ]);
  assert.deepEqual(
    problemsOf(`CREATE TABLE jobs (id INTEGER PRIMARY KEY AUTOINCREMENT); ${fixes.join(";")}`),
    [],
    "the fixes mend it",
  );
});

Deno.test("an id that is missing is not added, for a table that exists cannot get one", () => {
  const { problems } = factsOf(
    "CREATE TABLE jobs (key INTEGER PRIMARY KEY, payload TEXT, attempt INTEGER, locked_until INT)",
  );
  assert.equal(problems.length, 1);
  assert.equal(problems[0]!.column, "id");
  assert.equal(problems[0]!.problem, "the column does not exist");
  assert.doesNotMatch(problems[0]!.fix, /ALTER TABLE/);
});

Deno.test("a column of a type that cannot do for its role is a problem", () => {
  const wrong = (sql: string, options: Partial<TableDescription> = {}) => problemsOf(sql, options);
  for (const type of ["INTEGER", "REAL", "NUMERIC", "DATE"]) {
    assert.deepEqual(wrong(table({ payload: `payload ${type}` })), [
      `payload: the column has the type ${type}`,
    ]);
  }
  const bytes = { payload: { column: "payload", storage: "bytes" } } as const;
  assert.deepEqual(wrong(table({ payload: "payload TEXT" }), bytes), [
    "payload: the column has the type TEXT",
  ]);
  for (const type of ["TEXT", "REAL", "BLOB", "NUMERIC"]) {
    assert.deepEqual(wrong(table({}, `attempt ${type}`)), [
      `attempt: the column has the type ${type}`,
    ]);
  }
  for (const type of ["REAL", "BLOB", "DECIMAL"]) {
    assert.deepEqual(wrong(table({}, undefined, `locked_until ${type}`)), [
      `locked_until: the column has the type ${type}`,
    ]);
  }
  assert.deepEqual(wrong(table({}, "attempt")), ["attempt: the column has the type (none)"]);
  for (const type of ["REAL", "NUMERIC", "BLOB"]) {
    const problems = wrong(table({ id: `id ${type} PRIMARY KEY` }), { id: BY_SERVICE });
    assert.deepEqual(problems, [`id: the column has the type ${type}`]);
  }
});

Deno.test("every type that can do for its role is taken", () => {
  for (const type of ["TEXT", "VARCHAR(200)", "CLOB", "JSON TEXT", "BLOB", ""]) {
    assert.deepEqual(problemsOf(table({ payload: `payload ${type}` })), [], type);
  }
  const bytes = { payload: { column: "payload", storage: "bytes" } } as const;
  assert.deepEqual(problemsOf(table({ payload: "payload BLOB" }), bytes), []);
  for (
    const type of ["INT", "BIGINT", "SMALLINT", "TEXT", "VARCHAR(30)", "DATETIME", "TIMESTAMP"]
  ) {
    assert.deepEqual(problemsOf(table({}, undefined, `locked_until ${type}`)), [], type);
  }
  for (const type of ["INT", "TINYINT", "bigint"]) {
    assert.deepEqual(problemsOf(table({}, `attempt ${type}`)), [], type);
  }
});

Deno.test("a view is a problem", () => {
  const sql = `${table().replace("jobs", "base")}; CREATE VIEW jobs AS SELECT * FROM base`;
  assert(problemsOf(sql).includes("it is a view"));
});

Deno.test("an id that is not unique is a problem, and the fix makes it unique", () => {
  const sql = table({ id: "id TEXT" });
  const { problems } = factsOf(sql, { id: BY_SERVICE });
  assert.deepEqual(problems.map(({ problem }) => problem), ["the id is not unique"]);
  const fix = problems[0]!.fix.slice(problems[0]!.fix.indexOf("CREATE"));
  assert.deepEqual(problemsOf(`${sql}; ${fix}`, { id: BY_SERVICE }), []);
});

Deno.test("only what makes the id alone unique counts", () => {
  const plain = table({ id: "id TEXT" });
  const id = BY_SERVICE;
  const notUnique = ["id: the id is not unique"];
  const both = plain.replace("jobs (", "jobs (tenant TEXT, ").replace(/\)$/, ", PRIMARY KEY (");
  assert.deepEqual(problemsOf(`${both}tenant, id))`, { id }), notUnique);
  assert.deepEqual(problemsOf(`${both}id, tenant))`, { id }), notUnique);
  for (
    const index of [
      "CREATE INDEX i ON jobs (id)",
      "CREATE UNIQUE INDEX i ON jobs (id, payload)",
      "CREATE UNIQUE INDEX i ON jobs (id) WHERE attempt > 5",
      "CREATE UNIQUE INDEX i ON jobs (payload)",
      "CREATE UNIQUE INDEX i ON jobs (lower(id))",
    ]
  ) {
    assert.deepEqual(problemsOf(`${plain}; ${index}`, { id }), notUnique, index);
  }
  for (
    const sql of [
      `${plain}; CREATE UNIQUE INDEX i ON jobs (id)`,
      `${plain}; CREATE UNIQUE INDEX i ON jobs ("ID" DESC)`,
      table({ id: "id TEXT PRIMARY KEY" }),
      table({ id: "id TEXT UNIQUE" }),
      table({ id: "id TEXT UNIQUE, other INTEGER PRIMARY KEY" }),
    ]
  ) assert.deepEqual(problemsOf(sql, { id }), [], sql);
});

Deno.test("an integer id that is used again after a delete is a problem", () => {
  assert.deepEqual(problemsOf(table({ id: "id INTEGER PRIMARY KEY" })), [NO_AUTOINCREMENT]);
  const { problems } = factsOf(table({ id: "id INTEGER PRIMARY KEY" }));
  assert.match(problems[0]!.fix, /INTEGER PRIMARY KEY AUTOINCREMENT.*generate/);
  assert.deepEqual(problemsOf(table({ id: "id INTEGER PRIMARY KEY" }), { id: BY_SERVICE }), []);
  assert.deepEqual(problemsOf(table({ id: "id integer primary key autoincrement" })), []);
});

Deno.test("the word AUTOINCREMENT in a comment or in a text does not count", () => {
  for (
    const id of [
      "id INTEGER PRIMARY KEY, -- no AUTOINCREMENT\n note TEXT",
      "id INTEGER PRIMARY KEY, /* AUTOINCREMENT? */ note TEXT",
      "id INTEGER PRIMARY KEY, note TEXT DEFAULT 'AUTOINCREMENT'",
      `id INTEGER PRIMARY KEY, "AUTOINCREMENT" TEXT`,
    ]
  ) assert.deepEqual(problemsOf(table({ id })), [NO_AUTOINCREMENT], id);
});

Deno.test("an id that nothing generates is a problem", () => {
  const nothing = ["id: nothing generates the id"];
  for (
    const id of [
      "id TEXT PRIMARY KEY",
      "id BIGINT PRIMARY KEY",
      "id INT PRIMARY KEY",
      "id TEXT UNIQUE",
    ]
  ) assert.deepEqual(problemsOf(table({ id })), nothing, id);
  const { problems } = factsOf(table({ id: "id TEXT PRIMARY KEY" }));
  assert.match(problems[0]!.fix, /default.*\{ column: "id", generate: \(\) => … \}/);
  const byDefault = "id TEXT PRIMARY KEY DEFAULT (hex(randomblob(16)))";
  assert.deepEqual(problemsOf(table({ id: byDefault })), []);
  assert.deepEqual(problemsOf(table({ id: "id TEXT PRIMARY KEY" }), { id: BY_SERVICE }), []);
});

Deno.test("names are compared as SQLite does, without regard to case", () => {
  const sql = `CREATE TABLE JOBS (ID integer PRIMARY KEY autoincrement, PayLoad text,
    ATTEMPT Integer, Locked_Until datetime)`;
  const { columns, problems } = factsOf(sql);
  assert.deepEqual(problems, []);
  assert.deepEqual(Object.fromEntries(columns), {
    id: "INTEGER",
    payload: "TEXT",
    attempt: "INTEGER",
    locked_until: "datetime",
  }, "by the names as described");
  const other = { table: "JoBs", id: { column: "Id", generatedBy: "database" } } as const;
  assert.deepEqual(factsOf(table(), other).problems, []);
});

Deno.test("STRICT tables are taken, and their types checked", () => {
  assert.deepEqual(problemsOf(table({ rest: " STRICT" })), []);
  assert.deepEqual(problemsOf(table({ rest: " STRICT", payload: "payload ANY" })), []);
  assert.deepEqual(problemsOf(table({ rest: " STRICT", payload: "payload BLOB" })), [
    "payload: the column has the type BLOB",
  ]);
  assert.deepEqual(problemsOf(table({ rest: " STRICT" }, "attempt TEXT")), [
    "attempt: the column has the type TEXT",
  ]);
});

Deno.test("WITHOUT ROWID tables generate no ids", () => {
  const rest = " WITHOUT ROWID";
  const id = "id INTEGER PRIMARY KEY";
  const { problems } = factsOf(table({ rest, id }));
  assert.deepEqual(problems.map(({ problem }) => problem), ["nothing generates the id"]);
  assert.doesNotMatch(problems[0]!.fix, /AUTOINCREMENT/, "which such a table cannot have");
  assert.deepEqual(problemsOf(table({ rest, id }), { id: BY_SERVICE }), []);
  const text = "id TEXT PRIMARY KEY";
  assert.deepEqual(problemsOf(table({ rest, id: text }), { id: BY_SERVICE }), []);
  assert.deepEqual(problemsOf(table({ rest, id: text })), ["id: nothing generates the id"]);
});

Deno.test("a lockedUntil that may not be NULL is a problem, for a freed row has none", () => {
  const sql = table({}, undefined, "locked_until INTEGER NOT NULL DEFAULT 0");
  assert.equal(problemsOf(sql).length, 1, "retry() would break the constraint");
});

Deno.test("all problems of a table are found together", () => {
  const sql = "CREATE TABLE jobs (id TEXT, payload REAL, locked_until BLOB)";
  assert.deepEqual(problemsOf(sql), [
    "payload: the column has the type REAL",
    "attempt: the column does not exist",
    "locked_until: the column has the type BLOB",
    "id: the id is not unique",
  ]);
});

Deno.test("all problems of all tables come in one error, each with its subscription", async () => {
  const roles = { id: "id", lockedUntil: "locked_until", payload: text("payload") };
  const jobs = inbox("jobs", { ...roles, attempt: "attempt" });
  const mails = inbox("mails", roles);
  using handle = new DatabaseSync(":memory:");
  handle.exec("CREATE TABLE jobs (id INTEGER PRIMARY KEY, payload REAL, attempt INTEGER)");
  const broker = new Broker(sqlite({ handle })).include(
    jobs.queue("rendering").subscribe(() => {}),
    mails.queue().subscribe(() => {}),
  );
  await assert.rejects(broker.connect(), (error: unknown) => {
    assert(error instanceof SchemaError);
    assert.deepEqual(
      error.problems.map(({ table, column, subscription }) => [table, column, subscription]),
      [
        ["jobs", "payload", "rendering"],
        ["jobs", "locked_until", "rendering"],
        ["jobs", "id", "rendering"],
        ["mails", undefined, "mails"],
      ],
    );
    const lines = error.message.split("\n- ");
    assert.equal(lines.length, 5);
    assert.match(
      lines[1]!,
      /^"jobs"\."payload" \(subscription "rendering"\): .*REAL; make it TEXT/,
    );
    assert.match(
      lines[4]!,
      /^"mails" \(subscription "mails"\): the table does not exist; .*CREATE/s,
    );
    return true;
  });
  assert.equal(handle.isTransaction, false);
});

Deno.test("claims that no index serves are warned of, with the statements that mend it", () => {
  const roles = { group: "queue", priority: "priority", retryAfter: "due", processedAt: "done" };
  const create = `CREATE TABLE jobs (id INTEGER PRIMARY KEY AUTOINCREMENT, payload TEXT, queue TEXT,
    priority INTEGER NOT NULL, due INTEGER, attempt INTEGER, done INTEGER, locked_until INTEGER)`;
  const { warnings, problems } = factsOf(create, roles);
  assert.deepEqual(problems, []);
  assert.deepEqual(warnings.map(({ fix }) => fix), [
    `run: CREATE INDEX "jobs_free" ON "jobs" ("queue", "priority", "due", "id") ` +
    `WHERE "locked_until" IS NULL AND "done" IS NULL`,
    `run: CREATE INDEX "jobs_leased" ON "jobs" ("queue", "locked_until", "id") ` +
    `WHERE "locked_until" IS NOT NULL AND "done" IS NULL`,
  ]);
  const indexes = "CREATE INDEX a ON jobs (done, priority, queue, locked_until, due);" +
    "CREATE INDEX b ON jobs (queue, done, locked_until)";
  assert.deepEqual(factsOf(`${create};${indexes}`, roles).warnings, []);
});

Deno.test("an index of other rows does not serve, whatever its columns", () => {
  const create = `CREATE TABLE jobs (id INTEGER PRIMARY KEY AUTOINCREMENT, payload TEXT,
    attempt INTEGER, undone INTEGER, done INTEGER, locked_until INTEGER)`;
  const leased = "CREATE INDEX a ON jobs (locked_until, id) WHERE locked_until IS NOT NULL";
  const missing = (sql: string, options = {}): number =>
    factsOf(`${create};${sql}`, options).warnings.length;
  assert.equal(missing(leased), 1);
  assert.equal(missing(`${leased}; CREATE INDEX b ON jobs (id) WHERE "locked_until" IS NULL`), 0);
  const marked = { processedAt: "done" };
  const undone = "CREATE INDEX b ON jobs (id) WHERE locked_until IS NULL AND undone IS NULL";
  assert.equal(missing(`${leased}; ${undone}`, marked), 2);
});

Deno.test("columns that cannot do for the other roles are problems", () => {
  const roles = { group: "queue", priority: "priority", retryAfter: "due", processedAt: "done" };
  const create = `CREATE TABLE jobs (id INTEGER PRIMARY KEY AUTOINCREMENT, payload TEXT, queue BLOB,
    priority INTEGER, due REAL, attempt INTEGER, done INTEGER NOT NULL, locked_until INTEGER)`;
  assert.deepEqual(problemsOf(create, roles), [
    "queue: the column has the type BLOB",
    "priority: the column may be NULL, and a row without a priority would never be claimed",
    "due: the column has the type REAL",
    "done: the column may not be NULL, which it is until the row is done",
  ]);
});
