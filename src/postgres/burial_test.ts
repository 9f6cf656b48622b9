import assert from "node:assert/strict";
import type {
  AdvisoryLockStatements,
  Burial,
  LeaseStatements,
  LeaseToken,
  LockedRowAt,
  QueueUse,
  RowLockStatements,
  TableDescription,
} from "../driver/dialect.ts";
import type { Session, SqlRow } from "../driver/driver.ts";
import { bind } from "../driver/statement.ts";
import { postgresDialect } from "./dialect.ts";
import { pidOf, serverTest, withDriver } from "./server_for_test.ts";
import { facts, inspect, type PostgresFacts } from "./table_facts.ts";

const NOW = Date.parse("2026-01-31T10:00:00.250Z");
const EXPIRY = Date.parse("2026-01-31T10:00:31Z");
const USE: QueueUse = { clock: "given", group: "q" };
const ROLES: Partial<TableDescription> = {
  attempt: "attempt",
  group: "queue",
  retryAfter: "due",
  processedAt: "done",
  headers: "headers",
  partitionKey: "part",
  uniqueKey: "unique_key",
  lastError: "last_error",
};

type At = LeaseToken & LockedRowAt;
type Foreign = Readonly<Record<string, (at: At) => Partial<At>>>;

const FOREIGN: Foreign = { "no such row": () => ({ id: 99n }) };
const FOREIGN_LEASE: Foreign = {
  ...FOREIGN,
  "another attempt": () => ({ attempt: 1 }),
  "a lease that ends later than any of the holder's": () => ({ latestExpiry: EXPIRY - 1000 }),
  "a row of another queue": () => ({ id: 2n }),
};
const FOREIGN_LOCK: Foreign = {
  ...FOREIGN,
  "another attempt": () => ({ attempt: 2 }),
  "another session": ({ holder }) => ({ holder: holder + 1n }),
  "a row of another queue": () => ({ id: 2n }),
};

const FORMS: Readonly<Record<string, readonly [Partial<TableDescription>, Foreign]>> = {
  lease: [{ ...ROLES, lockedUntil: "locked_until" }, FOREIGN_LEASE],
  "row lock": [{ ...ROLES, form: "row lock" }, FOREIGN],
  "advisory lock": [{ ...ROLES, form: "advisory lock", lockKey: ["k"] }, FOREIGN_LOCK],
};

for (const [form, [roles, foreign]] of Object.entries(FORMS)) {
  burialTest(`a row that is buried in its own table begins anew there: ${form}`, async (on) => {
    const source = await on.create("buried", roles);
    assert.equal(buryOf(source, USE), undefined, "nothing without a dead letter");
    const bury = buryOf(source, { ...USE, deadLetter: { group: "dead" } })!;
    const at = await on.held(source.table);
    for (const [error, kept] of [[undefined, "before"], ["after", "after"]] as const) {
      await on.fill(source.table);
      const before = await on.rows("buried");
      for (const [reason, other] of Object.entries(foreign)) {
        assert.deepEqual(await on.run(bury, { ...at, error, ...other(at) }), [], reason);
      }
      assert.deepEqual(await on.rows("buried"), before);
      assert.deepEqual(await on.run(bury, { ...at, error }), [{ id: "1" }]);
      const changed = {
        queue: "dead",
        attempt: 1,
        due: "2026-01-31T10:00:00.25+00:00",
        unique_key: null,
        last_error: kept,
        ...(source.table.lockedUntil && { locked_until: "2026-01-31T10:00:01+00:00" }),
      };
      assert.deepEqual(await on.rows("buried"), [{ ...before[0], ...changed }, before[1]]);
    }
  });

  for (const processedAt of ["done", undefined]) {
    const left = processedAt === undefined ? "gone from" : "done in";
    burialTest(
      `a row that is buried in another table is ${left} its own: ${form}`,
      async (on) => {
        const source = await on.create("buried", { ...roles, processedAt }, "note text");
        const target = await on.create("graves", TARGET, "note text");
        const deadLetter = { ...target, group: "dead" };
        const bury = buryOf(source, { ...USE, deadLetter })!;
        const at = { ...await on.held(source.table), newId: "x" };
        await on.fill(source.table);
        await on.session.query("UPDATE buried SET note = 'n' WHERE id = 1");
        const before = await on.rows("buried");
        for (const [reason, other] of Object.entries(foreign)) {
          assert.deepEqual(await on.run(bury, { ...at, ...other(at) }), [], reason);
        }
        assert.deepEqual([await on.rows("buried"), await on.rows("graves")], [before, []]);
        assert.deepEqual(await on.run(bury, { ...at, error: "after" }), [{ id: "1", moved: 1 }]);
        const row = {
          key: "x",
          body: "p",
          headers: '{"a":"b"}',
          part: "a",
          dedup: "k",
          tries: 1,
          kind: "dead",
          why: "after",
          due: "2026-01-31T10:00:00.25+00:00",
          note: "n",
        };
        assert.deepEqual(await on.rows("graves"), [row]);
        const done = { ...before[0], done: "2026-01-31T10:00:00.25+00:00" };
        assert.deepEqual(
          await on.rows("buried"),
          processedAt === undefined ? [before[1]] : [done, before[1]],
        );

        await on.fill(source.table);
        assert.deepEqual(
          await on.run(bury, { ...at, newId: "y" }),
          [{ id: "1", moved: 0 }],
          "a row with the same unique key is there already",
        );
        assert.deepEqual(await on.rows("graves"), [row]);
      },
    );
  }
}

burialTest(
  "what the failure before it said goes along to another table, with ids that the database makes",
  async (on) => {
    const roles = FORMS["row lock"]![0];
    const source = await on.create("buried", roles);
    const target = await on.create("graves", { ...roles, uniqueKey: undefined });
    const bury = buryOf(source, { ...USE, deadLetter: { ...target, group: "dead" } })!;
    await on.fill(source.table);
    const at = { ...await on.held(source.table), id: 2n };
    assert.deepEqual(await on.run(bury, at), [{ id: "2", moved: 1 }]);
    const [row, ...others] = await on.rows("graves");
    assert.deepEqual(others, []);
    assert.deepEqual([row?.id, row?.queue, row?.last_error, row?.done], [
      1,
      "dead",
      "before",
      null,
    ]);
  },
);

/** Its columns have other names than the roles have in the table that rows come from. */
const TARGET: Partial<TableDescription> = {
  form: "row lock",
  id: { column: "key", generatedBy: "service" },
  payload: { column: "body", storage: "text" },
  headers: "headers",
  partitionKey: "part",
  uniqueKey: "dedup",
  attempt: "tries",
  group: "kind",
  lastError: "why",
  retryAfter: "due",
};

interface Described {
  readonly table: TableDescription;
  readonly facts: PostgresFacts;
}

function buryOf({ table, facts }: Described, use: QueueUse): Burial<At> | undefined {
  const statements: Record<
    string,
    () => LeaseStatements | RowLockStatements | AdvisoryLockStatements
  > = {
    lease: () => postgresDialect.lease(table, facts, use),
    "row lock": () => postgresDialect.rowLock!(table, facts, use),
    "advisory lock": () => postgresDialect.advisoryLock(table, facts, use),
  };
  return statements[table.form]!().bury as Burial<At> | undefined;
}

/** Tables of the session's own, on one transaction. */
interface On {
  readonly session: Session;
  /** Makes a table as `ddl` makes it, with one more column. */
  create(name: string, roles: Partial<TableDescription>, more?: string): Promise<Described>;
  /** The first row as its holder knows it; each form compares what it has. */
  held(table: TableDescription): Promise<At>;
  /** Makes the table hold two rows, of two groups. */
  fill(table: TableDescription): Promise<void>;
  rows(name: string): Promise<readonly Record<string, unknown>[]>;
  /** Runs the one statement of a burial. */
  run(
    bury: Burial<At>,
    values: At & { readonly error?: string; readonly newId?: string },
  ): Promise<readonly SqlRow[]>;
}

function burialTest(name: string, test: (on: On) => Promise<void>): void {
  serverTest(name, (server) =>
    withDriver(server, {}, async (driver) => {
      const session = await driver.session();
      await session.begin();
      try {
        await session.query("SET LOCAL search_path TO pg_temp");
        await session.query("SET LOCAL TimeZone TO 'UTC'");
        await test(onSession(session));
      } finally {
        await session.release();
      }
    }));
}

function onSession(session: Session): On {
  return {
    session,
    create: async (name, roles, more) => {
      const table: TableDescription = {
        table: name,
        form: "lease",
        id: { column: "id", generatedBy: "database" },
        payload: { column: "payload", storage: "text" },
        ...roles,
      };
      for (const text of postgresDialect.ddl(table)) await session.query(text);
      if (more !== undefined) await session.query(`ALTER TABLE ${name} ADD ${more}`);
      const asked = inspect(table);
      const { rows } = await session.query(asked.text, bind(asked, undefined));
      const found = facts(table, rows);
      assert.deepEqual(found.problems, []);
      return { table, facts: found };
    },
    held: async ({ form }) => ({
      id: 1n,
      now: NOW,
      attempt: form === "lease" ? 2 : 1,
      expiry: EXPIRY,
      latestExpiry: EXPIRY,
      holder: BigInt(Number(await pidOf(session))),
    }),
    fill: async ({ table, lockedUntil }) => {
      await session.query(`TRUNCATE TABLE ${table} RESTART IDENTITY`);
      await session.query(
        `INSERT INTO ${table} (queue, payload, attempt, due, headers, part, unique_key, last_error)
         SELECT q, 'p', 2, '2020-01-01', '{"a":"b"}', 'a', 'k', 'before'
         FROM unnest(ARRAY['q', 'other']) AS q`,
      );
      if (lockedUntil === undefined) return;
      await session.query(`UPDATE ${table} SET ${lockedUntil} = '2026-01-31 10:00:31Z'`);
    },
    rows: async (name) => {
      const key = name === "graves" ? "1" : "id";
      const { rows } = await session.query(
        `SELECT to_json(t)::text AS row FROM ${name} AS t ORDER BY ${key}`,
      );
      return rows.map(({ row }) => JSON.parse(String(row)));
    },
    run: async ([statement, ...others], values) => {
      assert.deepEqual(others, []);
      return (await session.query(statement!.text, bind(statement!, values))).rows;
    },
  };
}
