import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { LeaseToken, MessageId, TableDescription } from "../driver/dialect.ts";
import type { SqlRow, SqlValue } from "../driver/driver.ts";
import { bind, type Statement } from "../driver/statement.ts";
import { ddl } from "./ddl.ts";
import type { SqliteFacts } from "./columns.ts";
import { leaseStatements, type SqliteLeaseStatements } from "./lease_statements.ts";
import { facts, inspect } from "./table_facts.ts";

const NOW = Date.UTC(2026, 0, 31, 10, 0, 0, 250);
const LEASE = { now: NOW, leaseSeconds: 30 };

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

function statementsOf(table: TableDescription, timeType: string): SqliteLeaseStatements {
  return leaseStatements(table, {
    exists: true,
    columns: new Map([["locked_until", timeType]]),
    problems: [],
    warnings: [],
  }, { clock: "given" });
}

Deno.test("the declared type of the column decides how times are kept", () => {
  const first = (type: string) => bind(statementsOf(describe(), type).renew.one, token(1n))[0];
  for (const type of ["INTEGER", "BIGINT", "int"]) assert.equal(first(type), 1769853631000n);
  for (const type of ["TEXT", "VARCHAR(30)", "DATETIME", "TIMESTAMP"]) {
    assert.equal(first(type), "2026-01-31T10:00:31.000Z");
  }
});

/** A table made by ddl(), after what a test changes of it. */
class Table implements Disposable {
  readonly database = new DatabaseSync(":memory:");
  readonly statements: SqliteLeaseStatements;

  constructor(
    { timeType = "INTEGER", change = (ddl: string) => ddl, ...rest }:
      & { timeType?: string; change?: (ddl: string) => string }
      & Partial<TableDescription> = {},
  ) {
    const table = describe(rest);
    const create = ddl(table).join(";\n")
      .replace(`"locked_until" INTEGER`, `"locked_until" ${timeType}`);
    this.database.exec(change(create));
    this.statements = statementsOf(table, timeType);
  }

  query(text: string, ...params: SqlValue[]): SqlRow[] {
    const statement = this.database.prepare(text);
    statement.setReadBigInts(true);
    return statement.all(...params).map((row) => ({ ...row })) as SqlRow[];
  }

  run<V>(statement: Statement<V>, values: V): SqlRow[] {
    return this.query(statement.text, ...bind(statement, values));
  }

  insert(row: Record<string, SqlValue>): MessageId {
    const { payload = "{}", ...rest } = row;
    const all = { payload, ...rest };
    const names = Object.keys(all).map((name) => `"${name}"`).join(", ");
    const marks = Object.keys(all).map(() => "?").join(", ");
    const text = `INSERT INTO jobs (${names}) VALUES (${marks}) RETURNING id`;
    return this.query(text, ...Object.values(all))[0]!.id as MessageId;
  }

  claimable(part: 0 | 1, now = NOW, limit = 1_000): SqlValue[] {
    const { first, each } = this.statements.claim.find;
    return this.run([...first, ...each][part]!, { now, limit, priority: 0n }).map(({ id }) => id!);
  }

  take(ids: readonly MessageId[], times = LEASE): LeaseToken[] {
    return this.run(this.statements.claim.take, { ...times, ids }).map((row) => {
      const { id, attempt, expiry } = this.statements.read(row);
      return { id, attempt, expiry, latestExpiry: expiry };
    });
  }

  [Symbol.dispose](): void {
    this.database.close();
  }
}

function token(id: MessageId): LeaseToken & { until: number } {
  const expiry = Date.UTC(2026, 0, 31, 10, 0, 31);
  return { id, attempt: 2, expiry, latestExpiry: expiry, until: expiry };
}

const INTEGER_IDS = [-9223372036854775808n, -1n, 7n, 9007199254740993n, 9223372036854775807n];
const TEXT_IDS = [
  "",
  "007",
  "7",
  "1e3",
  "9007199254740993",
  'a"b\\c',
  "O'Brien",
  "line\nbreak",
  "Grüße 日本 🙂",
];

for (const timeType of ["INTEGER", "TEXT"]) {
  for (const attempt of ["attempt", undefined]) {
    const kind = `${timeType} times ${attempt === undefined ? "without" : "and"} attempts`;

    Deno.test(`ids are exact through claim, renewal and settle, ${kind}`, () => {
      for (const ids of [INTEGER_IDS, TEXT_IDS]) {
        using table = new Table({
          timeType,
          attempt,
          id: {
            column: "id",
            generatedBy: typeof ids[0] === "string" ? "service" : "database",
          },
        });
        for (const id of ids) table.insert({ id });
        if (typeof ids[0] === "bigint") table.insert({ id: 9007199254740992n });
        assert.deepEqual(new Set(table.claimable(1)).isSupersetOf(new Set<MessageId>(ids)), true);
        const tokens = table.take(ids);
        assert.deepEqual(new Set(tokens.map(({ id }) => id)), new Set<MessageId>(ids));
        for (const token of tokens) {
          const later = { until: token.expiry + 15_000 };
          const renewed = { ...token, latestExpiry: token.expiry + 15_000 };
          assert.deepEqual(table.run(table.statements.renew.one, { ...token, ...later }), [
            { id: token.id },
          ]);
          assert.deepEqual(table.run(table.statements.remove.one, { ...renewed, now: NOW }), [{
            id: token.id,
          }]);
          assert.deepEqual(table.run(table.statements.remove.one, { ...renewed, now: NOW }), []);
        }
        const left = table.query("SELECT id FROM jobs").map(({ id }) => id);
        assert.deepEqual(left, typeof ids[0] === "bigint" ? [9007199254740992n] : []);
      }
    });

    Deno.test(`a row is claimed, held until its lease ends, and then claimed anew, ${kind}`, () => {
      using table = new Table({ timeType, attempt });
      const id = table.insert({});
      assert.deepEqual(table.claimable(1), [id]);
      assert.deepEqual(table.claimable(0), []);
      const [first] = table.take([id]);
      assert.equal(first!.expiry, Date.UTC(2026, 0, 31, 10, 0, 31));
      assert.equal(first!.attempt, attempt === undefined ? undefined : 2);
      assert.deepEqual(table.claimable(1), []);
      assert.deepEqual(table.claimable(0, first!.expiry - 1), []);
      assert.deepEqual(table.claimable(0, first!.expiry), [id]);

      const [second] = table.take([id], { now: first!.expiry, leaseSeconds: 30 });
      assert.equal(second!.attempt, attempt === undefined ? undefined : 3);
      for (const name of ["renew", "remove", "free", "delay", "release"] as const) {
        const values = { ...first!, now: first!.expiry, until: first!.expiry, delay: 0 };
        assert.deepEqual(table.run(table.statements[name].one, values), [], `a late ${name}`);
      }
      assert.deepEqual(table.run(table.statements.remove.one, { ...second!, now: NOW }), [{ id }]);
    });

    Deno.test(`a settle with the old expiry holds after a renewal, ${kind}`, () => {
      using table = new Table({ timeType, attempt });
      const id = table.insert({});
      const [token] = table.take([id]);
      const times = { until: token!.expiry + 15_000 };
      assert.equal(table.run(table.statements.renew.one, { ...token!, ...times }).length, 1);
      const uncertain = { ...token!, latestExpiry: token!.expiry + 15_000 };
      assert.deepEqual(table.run(table.statements.remove.one, { ...uncertain, now: NOW }), [{
        id,
      }]);
    });

    Deno.test(`a settle holds though the renewal tried before it never arrived, ${kind}`, () => {
      using table = new Table({ timeType, attempt });
      const id = table.insert({});
      const [token] = table.take([id]);
      const uncertain = { ...token!, latestExpiry: token!.expiry + 15_000 };
      assert.deepEqual(table.run(table.statements.remove.one, { ...uncertain, now: NOW }), [{
        id,
      }]);
    });

    Deno.test(`a freed row is claimable within a second, and an old token is no more, ${kind}`, () => {
      using table = new Table({ timeType, attempt });
      const id = table.insert({});
      const [first] = table.take([id]);
      assert.equal(table.run(table.statements.free.one, { ...first!, now: NOW }).length, 1);
      const next = Date.UTC(2026, 0, 31, 10, 0, 1);
      const now = attempt === undefined ? next : NOW;
      assert.deepEqual([...table.claimable(0, now), ...table.claimable(1, now)], [id]);
      const [second] = table.take([id], { now, leaseSeconds: 30 });
      assert.equal(second!.attempt, attempt === undefined ? undefined : 3);
      assert.deepEqual(table.run(table.statements.remove.one, { ...first!, now: NOW }), []);
      assert.deepEqual(table.run(table.statements.remove.one, { ...second!, now: NOW }), [{ id }]);
    });

    Deno.test(`a released row keeps its attempt, and its old token is no more, ${kind}`, () => {
      using table = new Table({ timeType, attempt });
      const id = table.insert({});
      const [first] = table.take([id]);
      assert.equal(table.run(table.statements.release.one, { ...first!, now: NOW }).length, 1);
      const next = Date.UTC(2026, 0, 31, 10, 0, 1);
      assert.deepEqual([...table.claimable(0), ...table.claimable(1)], [], "not in this second");
      assert.deepEqual([...table.claimable(0, next), ...table.claimable(1, next)], [id]);
      const [second] = table.take([id], { now: next, leaseSeconds: 30 });
      assert.equal(second!.attempt, first!.attempt);
      assert(second!.expiry > first!.expiry);
      assert.deepEqual(table.run(table.statements.remove.one, { ...first!, now: NOW }), []);
      assert.deepEqual(table.run(table.statements.remove.one, { ...second!, now: NOW }), [{ id }]);
    });

    Deno.test(`a holder with a shorter lease keeps its row from a late settle, ${kind}`, () => {
      using table = new Table({ timeType, attempt });
      const id = table.insert({});
      const [stalled] = table.take([id]);
      // It tried to renew, and nothing of that arrived; then its lease ended.
      const late = { ...stalled!, latestExpiry: stalled!.expiry + 15_000 };
      const [holder] = table.take([id], { now: stalled!.expiry, leaseSeconds: 5 });
      assert(holder!.expiry > stalled!.expiry && holder!.expiry < late.latestExpiry);
      assert.deepEqual(
        table.run(table.statements.remove.one, { ...late, now: NOW }),
        [],
        "a late settle has deleted the row of the holder",
      );
      assert.deepEqual(table.run(table.statements.remove.one, { ...holder!, now: NOW }), [{ id }]);
    });
  }

  Deno.test(`a delayed row is due when its delay is over, rounded up, ${timeType} times`, () => {
    using table = new Table({ timeType });
    const id = table.insert({});
    const [token] = table.take([id]);
    const values = { ...token!, now: NOW, delay: 1_500 };
    assert.equal(table.run(table.statements.delay.one, values).length, 1);
    const due = Date.UTC(2026, 0, 31, 10, 0, 2, 1);
    assert.deepEqual(table.claimable(0, due - 1), []);
    assert.deepEqual(table.claimable(0, due), [id]);
    assert.equal(table.take([id], { now: due, leaseSeconds: 30 })[0]!.attempt, 3);
  });

  Deno.test(`leases that have ended come back in order of their end, ${timeType} times`, () => {
    using table = new Table({ timeType });
    const ids = [0, 1, 2, 3].map(() => table.insert({}));
    const order = [ids[2]!, ids[0]!, ids[3]!, ids[1]!];
    order.forEach((id, index) => table.take([id], { now: NOW + index * 1_000, leaseSeconds: 30 }));
    assert.deepEqual(table.claimable(0, NOW + 60_000), order);
    assert.deepEqual(table.claimable(0, NOW + 60_000, 2), order.slice(0, 2));
  });
}

Deno.test("both formats of text times are due at the right moment, in the right order", () => {
  using table = new Table({ timeType: "TEXT", id: { column: "id", generatedBy: "service" } });
  const times = {
    a: "2026-01-31 10:00:00",
    b: "2026-01-31T10:00:00.000Z",
    c: "2026-01-31 09:59:59",
    d: "2026-01-31T09:59:59.999Z",
    e: "2026-01-31 10:00:01",
    f: "2026-01-31T10:00:00.251Z",
    g: "2026-01-31 23:00:00",
    h: "2026-01-30T23:59:59.999Z",
    i: "2026-01-30 23:59:59",
    j: "2026-02-01 00:00:00",
    k: "2026-01-31T10:00:00.250Z",
  };
  for (const [id, time] of Object.entries(times)) table.insert({ id, locked_until: time });
  const due = (...time: Parameters<typeof Date.UTC>) => table.claimable(0, Date.UTC(...time));
  assert.deepEqual(due(2026, 0, 31, 9, 59, 59, 998), ["i", "h", "c"]);
  assert.deepEqual(due(2026, 0, 31, 9, 59, 59, 999), ["i", "h", "c", "d"]);
  assert.deepEqual(due(2026, 0, 31, 10, 0, 0, 0), ["i", "h", "c", "d", "a", "b"]);
  assert.deepEqual(due(2026, 0, 31, 10, 0, 0, 249), ["i", "h", "c", "d", "a", "b"]);
  assert.deepEqual(due(2026, 0, 31, 10, 0, 0, 250), ["i", "h", "c", "d", "a", "b", "k"]);
  assert.deepEqual(due(2026, 0, 31, 10, 0, 0, 251), ["i", "h", "c", "d", "a", "b", "k", "f"]);
  assert.deepEqual(due(2026, 0, 31, 10, 0, 1), ["i", "h", "c", "d", "a", "b", "k", "f", "e"]);
  assert.deepEqual(due(2026, 1, 1), [..."ihcdabkfegj"]);
  assert.deepEqual(table.claimable(0, Date.UTC(2026, 1, 1), 3), ["i", "h", "c"]);
});

Deno.test("a settle works on a row whose time another program wrote in its own format", () => {
  using table = new Table({ timeType: "TEXT" });
  const id = table.insert({ locked_until: "2026-01-31 09:00:00" });
  assert.deepEqual(table.claimable(0), [id]);
  const [token] = table.take([id]);
  assert.deepEqual(table.query("SELECT locked_until FROM jobs"), [
    { locked_until: "2026-01-31T10:00:31.000Z" },
  ]);
  assert.deepEqual(table.run(table.statements.remove.one, { ...token!, now: NOW }), [{ id }]);
});

Deno.test("an attempt that is no possible number is claimable, and ends as one", () => {
  using table = new Table({
    change: (ddl) => ddl.replace("INTEGER NOT NULL DEFAULT 1", "INTEGER"),
  });
  const cases: [SqlValue, bigint][] = [
    [null, 2n],
    [-5n, 2n],
    [0n, 2n],
    [1n, 2n],
    [41n, 42n],
    ["garbage", 2n],
    ["", 2n],
    ["12 or so", 13n],
    [new Uint8Array([255, 0]), 2n],
    [2.5, 3n],
    [2147483645n, 2147483646n],
    [2147483647n, 2147483647n],
    [9223372036854775807n, 2147483647n],
    [1e300, 2147483647n],
    [-1e300, 2n],
    ["99999999999999999999999", 2147483647n],
  ];
  for (const [attempt, expected] of cases) {
    const id = table.insert({ attempt });
    assert.deepEqual(table.claimable(1), [id]);
    const [token] = table.take([id]);
    const place = `attempt ${String(attempt)}`;
    assert.equal(token!.attempt, Number(expected), place);
    const [row] = table.query("SELECT attempt, typeof(attempt) AS type FROM jobs");
    assert.deepEqual(row, { attempt: expected, type: "integer" }, place);
    assert.deepEqual(
      table.run(table.statements.remove.one, { ...token!, now: NOW }),
      [{ id }],
      place,
    );
  }
});

Deno.test("a row whose id is NULL or no integer and no text is never claimed", () => {
  using table = new Table({
    change: (ddl) => ddl.replace("INTEGER PRIMARY KEY AUTOINCREMENT", "BLOB UNIQUE"),
  });
  for (const id of [null, 1.5, new Uint8Array([1]), 5n, "five"]) table.insert({ id });
  assert.deepEqual(table.claimable(1), [5n, "five"]);
});

Deno.test("rows that nobody has claimed come in order of id, up to the limit", () => {
  using table = new Table();
  for (const id of [5n, -3n, 9007199254740993n, 9007199254740992n]) table.insert({ id });
  const ordered = [-3n, 5n, 9007199254740992n, 9007199254740993n];
  assert.deepEqual(table.claimable(1), ordered);
  assert.deepEqual(table.claimable(1, NOW, 2), ordered.slice(0, 2));
});

Deno.test("a payload comes out of the claim as it was stored", () => {
  using table = new Table({ payload: { column: "payload", storage: "bytes" } });
  const bytes = new Uint8Array([0, 1, 255]);
  table.insert({ payload: bytes });
  const [row] = table.run(table.statements.claim.take, { ...LEASE, ids: [1n] });
  assert.deepEqual(table.statements.read(row!), {
    id: 1n,
    attempt: 2,
    expiry: Date.UTC(2026, 0, 31, 10, 0, 31),
    content: { payload: bytes, headers: undefined, key: undefined, hasFailed: false },
  });
});

Deno.test("a row that @db/sqlite reads, integers as numbers where they fit, is read the same", () => {
  const { read } = statementsOf(describe(), "INTEGER");
  const row = { id: 7, attempt: 2, expiry: 1769853631000, payload: null };
  const content = { payload: null, headers: undefined, key: undefined, hasFailed: false };
  const expected = { id: 7n, attempt: 2, expiry: 1769853631000, content };
  assert.deepEqual(read(row), expected);
  assert.deepEqual(read({ ...row, id: 7n, attempt: 2n, expiry: 1769853631000n }), expected);
  assert.deepEqual(read({ ...row, id: "7" }), { ...expected, id: "7" });
});

const TEXTS: Partial<TableDescription> = {
  group: "queue",
  retryAfter: "due",
  headers: "headers",
  partitionKey: "part",
  uniqueKey: "unique_key",
  lastError: "last_error",
};

/** Its columns have other names than the roles have in the table that rows come from. */
const GRAVES: TableDescription = {
  table: "graves",
  form: "lease",
  id: { column: "key", generatedBy: "service" },
  payload: { column: "body", storage: "text" },
  headers: "headers",
  partitionKey: "part",
  uniqueKey: "dedup",
  attempt: "tries",
  lockedUntil: "until",
  group: "kind",
  lastError: "why",
  retryAfter: "due",
};

/** A queue `q` whose rows are buried, and a row of it that is held. */
class Burying implements Disposable {
  readonly database = new DatabaseSync(":memory:");
  readonly bury: NonNullable<SqliteLeaseStatements["bury"]>;

  constructor(roles: Partial<TableDescription>, target?: TableDescription) {
    const table = describe({ ...TEXTS, ...roles });
    const [facts, targetFacts] = [table, target].map((each) => each && this.#create(each));
    assert.equal(leaseStatements(table, facts!, { clock: "given", group: "q" }).bury, undefined);
    const deadLetter = { table: target, facts: targetFacts, group: "dead" };
    this.bury = leaseStatements(table, facts!, { clock: "given", group: "q", deadLetter }).bury!;
  }

  #create(table: TableDescription): SqliteFacts {
    for (const text of ddl(table)) this.database.exec(text);
    this.database.exec(`ALTER TABLE ${table.table} ADD ${table === GRAVES ? "NOTE" : "note"} TEXT`);
    const asked = inspect(table);
    return facts(table, this.query(asked.text, ...bind(asked, undefined)));
  }

  query(text: string, ...params: SqlValue[]): SqlRow[] {
    const rows = this.database.prepare(text).all(...params);
    return rows.map((row) => ({ ...row })) as SqlRow[];
  }

  fill(): void {
    this.database.exec("DELETE FROM jobs");
    this.database.exec(
      `INSERT INTO jobs (id, queue, payload, attempt, locked_until, due, headers, part, unique_key,
         last_error, note)
       SELECT id, queue, 'p', 2, 1769853631000, 0, '{"a":"b"}', 'a', 'k', 'before', 'n'
       FROM (SELECT 1 AS id, 'q' AS queue UNION ALL SELECT 2, 'other')`,
    );
  }

  /** Runs the statements in order, until the first finds nothing; how many rows each wrote. */
  run(values: LeaseToken & { readonly error?: string; readonly newId?: string }): number[] {
    const counts: number[] = [];
    for (const statement of this.bury) {
      const params = bind(statement, { ...values, now: NOW });
      const prepared = this.database.prepare(statement.text);
      const read = /^SELECT|RETURNING/.test(statement.text);
      counts.push(read ? prepared.all(...params).length : Number(prepared.run(...params).changes));
      if (counts[0] === 0) break;
    }
    return counts;
  }

  /** Whoever does not hold the row changes nothing. */
  refuse(): void {
    const before = this.query("SELECT * FROM jobs ORDER BY id");
    const expiry = Date.UTC(2026, 0, 31, 10, 0, 30);
    for (const other of [{ id: 99n }, { id: 2n }, { attempt: 1 }, { latestExpiry: expiry }]) {
      assert.deepEqual(
        this.run({ ...token(1n), newId: "x", ...other }),
        [0],
        Object.keys(other)[0],
      );
    }
    assert.deepEqual(this.query("SELECT * FROM jobs ORDER BY id"), before);
  }

  [Symbol.dispose](): void {
    this.database.close();
  }
}

Deno.test("a row that is buried in its own table begins anew there", () => {
  using on = new Burying({});
  for (const [error, kept] of [[undefined, "before"], ["after", "after"]] as const) {
    on.fill();
    on.refuse();
    const [first, second] = on.query("SELECT * FROM jobs ORDER BY id");
    assert.deepEqual(on.run({ ...token(1n), error }), [1]);
    assert.deepEqual(on.query("SELECT * FROM jobs ORDER BY id"), [{
      ...first,
      queue: "dead",
      attempt: 1,
      locked_until: Date.UTC(2026, 0, 31, 10, 0, 1),
      due: NOW,
      unique_key: null,
      last_error: kept,
    }, second]);
  }
});

for (const processedAt of ["done", undefined]) {
  const left = processedAt === undefined ? "gone from" : "done in";
  Deno.test(`a row that is buried in another table is ${left} its own`, () => {
    using on = new Burying({ processedAt }, GRAVES);
    on.fill();
    on.refuse();
    assert.deepEqual(on.query("SELECT * FROM graves"), []);
    const [first, second] = on.query("SELECT * FROM jobs ORDER BY id");
    assert.deepEqual(on.run({ ...token(1n), newId: "x", error: "after" }), [1, 1, 1]);
    const buried = {
      key: "x",
      body: "p",
      headers: '{"a":"b"}',
      part: "a",
      dedup: "k",
      tries: 1,
      until: null,
      kind: "dead",
      why: "after",
      due: NOW,
      NOTE: "n",
    };
    assert.deepEqual(on.query("SELECT * FROM graves"), [buried]);
    const done = { ...first, done: NOW };
    assert.deepEqual(
      on.query("SELECT * FROM jobs ORDER BY id"),
      processedAt === undefined ? [second] : [done, second],
    );

    on.fill();
    const again = on.run({ ...token(1n), newId: "y" });
    assert.deepEqual(again, [1, 0, 1], "a row with the same unique key is there already");
    assert.deepEqual(on.query("SELECT * FROM graves"), [buried]);
  });
}

Deno.test("what the failure before it said goes along to another table", () => {
  using on = new Burying({}, { ...GRAVES, id: { column: "key", generatedBy: "database" } });
  on.fill();
  assert.deepEqual(on.run(token(1n)), [1, 1, 1]);
  assert.deepEqual(on.query("SELECT key, why FROM graves"), [{ key: 1, why: "before" }]);
});

Deno.test("names are quoted, whatever is in them", () => {
  const odd = describe({
    table: 'my "jobs"',
    id: { column: 'i"d', generatedBy: "database" },
    payload: { column: "select", storage: "text" },
    attempt: "a b",
    lockedUntil: "order",
  });
  using database = new DatabaseSync(":memory:");
  for (const text of ddl(odd)) database.exec(text);
  const statements = leaseStatements(odd, {
    exists: true,
    columns: new Map([["order", "INTEGER"]]),
    problems: [],
    warnings: [],
  }, { clock: "given" });
  database.exec(`INSERT INTO "my ""jobs""" ("select") VALUES ('x')`);
  const run = <V>(statement: Statement<V>, values: V): SqlRow[] =>
    database.prepare(statement.text).all(...bind(statement, values)) as SqlRow[];
  assert.equal(run(statements.claim.find.each[0]!, { now: NOW, limit: 1, priority: 0n })[0]!.id, 1);
  const { id, attempt, expiry } = statements.read(
    run(statements.claim.take, { ...LEASE, ids: [1n] })[0]!,
  );
  const held = { id, attempt, expiry, latestExpiry: expiry };
  assert.equal(run(statements.renew.one, { ...held, until: held.expiry }).length, 1);
  assert.equal(run(statements.remove.one, { ...held, now: NOW }).length, 1);
});
