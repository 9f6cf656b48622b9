import { drizzle } from "drizzle-orm/postgres-js";
import { sql as drizzleSql } from "drizzle-orm";
import { CompiledQuery, Kysely, PostgresDialect } from "kysely";
import assert from "node:assert/strict";
import pg from "pg";
import postgresJs from "postgres";
import {
  drizzleTx,
  kyselyTx,
  mails,
  publishWithDrizzleOnPostgres,
  publishWithKysely,
  publishWithNodePostgres,
  publishWithPostgresJs,
  type Tables,
} from "../../examples/transactions.ts";
import { Broker } from "../broker.ts";
import {
  BEYOND_NUMBERS,
  CLIENT_PROMISES,
  type ClientDatabase,
  type ClientInTest,
} from "../client_transactions_for_test.ts";
import type { QueryAdapter } from "../driver/driver.ts";
import { postgres, type PostgresTx } from "./mod.ts";
import { query, serverTest, withDriver } from "./server_for_test.ts";

const CLIENTS: Readonly<Record<string, (address: string) => ClientInTest<PostgresTx>>> = {
  "postgres.js": (address) => {
    const sql = postgresJs(address);
    return {
      place: (broker, order) => publishWithPostgresJs(sql, broker, order),
      transaction: async (work) =>
        void await sql.begin((tx) => work(tx, async (text) => await tx.unsafe(text))),
      [Symbol.asyncDispose]: () => sql.end(),
    };
  },
  "a savepoint of postgres.js": (address) => {
    const sql = postgresJs(address);
    return {
      place: (broker, order) => publishWithPostgresJs(sql, broker, order),
      transaction: async (work) =>
        void await sql.begin((outer) =>
          outer.savepoint((tx) => work(tx, async (text) => await tx.unsafe(text)))
        ),
      [Symbol.asyncDispose]: () => sql.end(),
    };
  },
  "postgres.js whose rows are renamed, and nothing prepared": (address) => {
    const sql = postgresJs(address, { transform: postgresJs.toCamel, prepare: false });
    return {
      place: (broker, order) => publishWithPostgresJs(sql, broker, order),
      transaction: async (work) =>
        void await sql.begin((tx) => work(tx, async (text) => await tx.unsafe(text))),
      [Symbol.asyncDispose]: () => sql.end(),
    };
  },
  "a client of node-postgres": (address) => {
    const pool = new pg.Pool({ connectionString: address });
    const lend = async <T>(work: (client: QueryAdapter) => Promise<T>): Promise<T> => {
      const client = await pool.connect();
      try {
        return await work(client);
      } finally {
        client.release();
      }
    };
    return {
      place: (broker, order) =>
        lend((client) => publishWithNodePostgres(client as never, broker, order)),
      transaction: (work) =>
        lend(async (client) => {
          const write = async (text: string) => await client.query(text, []);
          await write("BEGIN");
          try {
            await work(client, write);
          } catch (error) {
            await write("ROLLBACK");
            throw error;
          }
          await write("COMMIT");
        }),
      [Symbol.asyncDispose]: () => pool.end(),
    };
  },
  "Kysely": (address) => {
    const pool = new pg.Pool({ connectionString: address });
    const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
    return {
      place: (broker, order) => publishWithKysely(db, broker, order),
      transaction: (work) =>
        db.transaction().execute((trx) =>
          work(kyselyTx(trx), (text) => trx.executeQuery(CompiledQuery.raw(text)))
        ),
      [Symbol.asyncDispose]: () => db.destroy(),
    };
  },
  "Drizzle": (address) => {
    const sql = postgresJs(address);
    const db = drizzle(sql);
    return {
      place: (broker, order) => publishWithDrizzleOnPostgres(db, broker, order),
      transaction: (work) =>
        db.transaction((tx) =>
          work(drizzleTx(tx), async (text) => await tx.execute(drizzleSql.raw(text)))
        ),
      [Symbol.asyncDispose]: () => sql.end(),
    };
  },
};

for (const [client, open] of Object.entries(CLIENTS)) {
  for (const promise of CLIENT_PROMISES) {
    serverTest(`in a transaction of ${client}: ${promise.name}`, async (server) => {
      await using database = await ownDatabase(server, open);
      await promise.run(database);
    });
  }
}

serverTest("a client, or a pool, is no transaction", async (server) => {
  const sql = postgresJs(server);
  const pool = new pg.Pool({ connectionString: server });
  const db = drizzle(sql);
  const kysely = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  await using broker = await new Broker(postgres(server)).connect();
  const reserved = await sql.reserve();
  try {
    await sql.begin(async (tx) => {
      for (const wrong of [sql, reserved, pool, db, kysely, null, { query: "SELECT 1" }]) {
        const options = { tx: wrong as PostgresTx };
        await assert.rejects(broker.publish(mails, { order: 1 }, options), isRefusal);
        await assert.rejects(broker.publishMany(mails, [{ order: 1 }], options), isRefusal);
      }
      await db.transaction(async (inDrizzle) => {
        const publishing = broker.publish(mails, { order: 1 }, { tx: inDrizzle as never });
        await assert.rejects(publishing, isRefusal);
      });
      assert.equal((await tx`SELECT 1 AS one`)[0]?.one, 1);
    });
  } finally {
    reserved.release();
    await sql.end();
    await kysely.destroy();
  }
});

function isRefusal(error: unknown): true {
  assert(error instanceof TypeError, String(error));
  assert.match(error.message, /^Cannot publish in this transaction: give .*query\(text, params\)/);
  return true;
}

/** Types only: the compiler says the same. */
export function refusedByTheCompiler(
  sql: postgresJs.Sql,
  broker: Broker<"Postgres", "lease", PostgresTx>,
): void {
  // @ts-expect-error -- the client is not its transaction
  broker.publish(mails, { order: 1 }, { tx: sql });
}

async function ownDatabase(
  server: string,
  open: (address: string) => ClientInTest<PostgresTx>,
): Promise<ClientDatabase<PostgresTx>> {
  const name = `holdfast_${crypto.randomUUID().replaceAll("-", "")}`;
  const administer = (text: string) =>
    withDriver(server, { connections: 1 }, async (driver) => void await query(driver, text));
  await administer(`CREATE DATABASE ${name}`);
  const address = new URL(server);
  address.pathname = `/${name}`;
  return {
    connect: () => postgres(address),
    startIds: `ALTER SEQUENCE mails_id_seq RESTART WITH ${BEYOND_NUMBERS}`,
    firstId: BEYOND_NUMBERS,
    open: () => open(address.href),
    [Symbol.asyncDispose]: () => administer(`DROP DATABASE ${name} WITH (FORCE)`),
  };
}
