import { CompiledQuery, Kysely, type SqliteDatabase, SqliteDialect } from "kysely";
import assert from "node:assert/strict";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import {
  kyselyTx,
  mails,
  publishWithKysely,
  publishWithNodeSqlite,
  type Tables,
} from "../../examples/transactions.ts";
import { Broker } from "../broker.ts";
import {
  BEYOND_NUMBERS,
  CLIENT_PROMISES,
  type ClientDatabase,
  type ClientInTest,
} from "../client_transactions_for_test.ts";
import { withFolder } from "./driver_for_test.ts";
import { sqlite, type SqliteTx } from "./mod.ts";

const CLIENTS: Readonly<Record<string, (handle: DatabaseSync) => ClientInTest<SqliteTx>>> = {
  "node:sqlite": (handle) => ({
    place: (broker, order) => publishWithNodeSqlite(handle, broker, order),
    async transaction(work) {
      handle.exec("BEGIN IMMEDIATE");
      try {
        await work(handle, (text) => Promise.resolve(handle.exec(text)));
      } catch (error) {
        handle.exec("ROLLBACK");
        throw error;
      }
      handle.exec("COMMIT");
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }),
  "Kysely": (handle) => {
    const db = new Kysely<Tables>({ dialect: new SqliteDialect({ database: forKysely(handle) }) });
    return {
      place: (broker, order) => publishWithKysely(db, broker, order),
      transaction: (work) =>
        db.transaction().execute((trx) =>
          work(kyselyTx(trx), (text) => trx.executeQuery(CompiledQuery.raw(text)))
        ),
      [Symbol.asyncDispose]: () => db.destroy(),
    };
  },
};

for (const [client, open] of Object.entries(CLIENTS)) {
  for (const promise of CLIENT_PROMISES) {
    Deno.test(`SQLite: in a transaction of ${client}: ${promise.name}`, () =>
      withFolder(async (folder) => {
        const file = `${folder}/shop.db`;
        using handle = new DatabaseSync(file);
        await promise.run(database(file, () => open(handle)));
      }));
  }
}

Deno.test("SQLite: in a transaction of the handle that the broker has: what is published goes with it", async () => {
  using handle = new DatabaseSync(":memory:");
  await using broker = await new Broker(sqlite({ handle })).createTables(mails.inbox).connect();
  for (const end of ["ROLLBACK", "COMMIT"]) {
    handle.exec("BEGIN IMMEDIATE");
    const options = { tx: handle, uniqueKey: "k" };
    const { id } = await broker.publish(mails, { order: 1 }, options);
    assert.deepEqual(await broker.publish(mails, { order: 2 }, options), { id, inserted: false });
    handle.exec(end);
    const { count } = handle.prepare("SELECT count(*) AS count FROM mails").get()!;
    assert.equal(count, end === "COMMIT" ? 1 : 0);
  }
});

Deno.test("SQLite: a handle without an open transaction, and what is no handle, are refused", () =>
  withFolder(async (folder) => {
    const file = `${folder}/shop.db`;
    using handle = new DatabaseSync(file);
    await using broker = await new Broker(sqlite(file)).createTables(mails.inbox).connect();
    const refusals: readonly (readonly [wrong: unknown, message: RegExp])[] = [
      [handle, /none is open on the handle; begin one/],
      [new Kysely<Tables>({ dialect: new SqliteDialect({ database: forKysely(handle) }) }), GIVE],
      [forKysely(handle), GIVE],
      [null, GIVE],
      [{ query: "SELECT 1" }, GIVE],
    ];
    for (const [wrong, message] of refusals) {
      const options = { tx: wrong as SqliteTx };
      for (
        const publish of [
          () => broker.publish(mails, { order: 1 }, options),
          () => broker.publishMany(mails, [{ order: 1 }], options),
        ]
      ) {
        await assert.rejects(publish, (error: unknown) => {
          assert(error instanceof TypeError, String(error));
          assert.match(error.message, message);
          return true;
        });
      }
    }
    assert.deepEqual(handle.prepare("SELECT id FROM mails").all(), []);
  }));

const GIVE = /^Cannot publish in this transaction: give the DatabaseSync/;

function database(
  file: string,
  open: () => ClientInTest<SqliteTx>,
): ClientDatabase<SqliteTx> {
  return {
    connect: () => sqlite(file),
    startIds: `INSERT INTO sqlite_sequence (name, seq) VALUES ('mails', ${BEYOND_NUMBERS - 1n})`,
    firstId: BEYOND_NUMBERS,
    open,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** Kysely asks for a database as better-sqlite3 has it; `node:sqlite` needs little to be one. */
function forKysely(handle: DatabaseSync): SqliteDatabase {
  return {
    prepare(text) {
      const statement = handle.prepare(text);
      statement.setReadBigInts(true);
      const values = (params: readonly unknown[]) => params as SQLInputValue[];
      return {
        reader: statement.columns().length > 0,
        all: (params) => statement.all(...values(params)),
        run: (params) => statement.run(...values(params)),
        iterate: (params) => statement.iterate(...values(params)),
      };
    },
    // The test closes it.
    close() {},
  };
}
