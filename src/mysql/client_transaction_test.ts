import { sql as drizzleSql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/mysql2";
import { CompiledQuery, Kysely, MysqlDialect } from "kysely";
import callbackMysql2 from "mysql2";
import mysql2 from "mysql2/promise";
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import {
  drizzleTx,
  kyselyTx,
  mails,
  publishWithDrizzleOnMysql,
  publishWithKysely,
  publishWithMysql2,
  type Tables,
} from "../../examples/transactions.ts";
import { Broker } from "../broker.ts";
import { bytes } from "../bytes.ts";
import {
  BEYOND_NUMBERS,
  CLIENT_PROMISES,
  type ClientDatabase,
  type ClientInTest,
} from "../client_transactions_for_test.ts";
import { inbox } from "../inbox.ts";
import { mysql, type MysqlTx } from "./mod.ts";
import { query, serverTest, withDriver } from "./server_for_test.ts";

const CLIENTS: Readonly<Record<string, (address: string) => ClientInTest<MysqlTx>>> = {
  "mysql2": (uri) => throughMysql2(mysql2.createPool(uri)),
  "mysql2 with options of its own": (uri) =>
    throughMysql2(
      mysql2.createPool({
        uri,
        namedPlaceholders: true,
        supportBigNumbers: true,
        bigNumberStrings: true,
        dateStrings: true,
        timezone: "+05:00",
      }),
      "SET SESSION time_zone = '+05:00', sql_mode = 'ANSI_QUOTES,TRADITIONAL'",
    ),
  "Kysely": (address) => {
    const db = new Kysely<Tables>({
      dialect: new MysqlDialect({ pool: callbackMysql2.createPool(address) }),
    });
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
    const pool = mysql2.createPool(address);
    const db = drizzle(pool);
    return {
      place: (broker, order) => publishWithDrizzleOnMysql(db, broker, order),
      transaction: (work) =>
        db.transaction((tx) => work(drizzleTx(tx), (text) => tx.execute(drizzleSql.raw(text)))),
      [Symbol.asyncDispose]: () => pool.end(),
    };
  },
};

function throughMysql2(pool: mysql2.Pool, settings = "DO 0"): ClientInTest<MysqlTx> {
  return {
    place: (broker, order) => publishWithMysql2(pool, broker, order),
    async transaction(work) {
      const connection = await pool.getConnection();
      try {
        await connection.query(settings);
        await connection.beginTransaction();
        await work(connection, (text) => connection.query(text));
        await connection.commit();
      } catch (error) {
        await connection.rollback();
        throw error;
      } finally {
        connection.release();
      }
    },
    [Symbol.asyncDispose]: () => pool.end(),
  };
}

for (const [client, open] of Object.entries(CLIENTS)) {
  for (const promise of CLIENT_PROMISES) {
    serverTest(`in a transaction of ${client}: ${promise.name}`, async (server) => {
      await using database = await ownDatabase(server, open);
      await promise.run(database);
    });
  }
}

serverTest("an adapter is given no value that a client might not take", async (server) => {
  await using database = await ownDatabase(server, CLIENTS.mysql2!);
  await using broker = await new Broker(database.connect()).createTables(FILES).connect();
  const connection = await mysql2.createConnection(server);
  try {
    await connection.query(`USE ${database.name}`);
    await connection.beginTransaction();
    const given: unknown[] = [];
    const tx = {
      query(text: string, params: readonly unknown[]) {
        given.push(...params);
        return connection.query(text, [...params]);
      },
    };
    const queue = FILES.queue();
    await broker.publish(queue, Uint8Array.of(0, 255), { tx, priority: 7n });
    await connection.commit();
    assert.deepEqual(given, [Buffer.of(0, 255), 7]);
    const text = "SELECT payload, priority FROM files";
    assert.deepEqual((await query(broker.driver, text)).rows.map((row) => ({ ...row })), [
      { payload: Uint8Array.of(0, 255), priority: 7 },
    ]);
  } finally {
    await connection.end();
  }
});

const FILES = inbox("files", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  priority: "priority",
  payload: bytes("payload"),
});

serverTest("a key that was committed since the transaction began is seen", async (server) => {
  await using database = await ownDatabase(server, CLIENTS.mysql2!);
  await using broker = await new Broker(database.connect()).createTables(mails.inbox).connect();
  await using client = await database.open();
  await client.transaction(async (tx, write) => {
    // At REPEATABLE READ, the servers' default, the first read decides what is seen.
    await write("SELECT count(*) FROM mails");
    const { id } = await broker.publish(mails, { order: 1 }, { uniqueKey: "k" });
    assert.deepEqual(
      await broker.publish(mails, { order: 2 }, { tx: tx as MysqlTx, uniqueKey: "k" }),
      { id, inserted: false },
    );
  });
});

serverTest("a pool, or what calls back, is no transaction", async (server) => {
  await using database = await ownDatabase(server, CLIENTS.mysql2!);
  const pool = mysql2.createPool(server);
  const db = drizzle(pool);
  const connection = await pool.getConnection();
  const kysely = new Kysely<Tables>({ dialect: new MysqlDialect({ pool: pool.pool }) });
  const callback = callbackMysql2.createConnection(server);
  try {
    await using broker = await new Broker(database.connect()).createTables(mails.inbox).connect();
    for (const wrong of [pool, pool.pool, callback, db, kysely, null, { query: "SELECT 1" }]) {
      const options = { tx: wrong as unknown as MysqlTx };
      await assert.rejects(broker.publish(mails, { order: 1 }, options), isRefusal);
      await assert.rejects(broker.publishMany(mails, [{ order: 1 }], options), isRefusal);
    }
    await db.transaction(async (tx) => {
      const publishing = broker.publish(mails, { order: 1 }, { tx });
      await assert.rejects(publishing, isRefusal);
    });
    assert.deepEqual((await query(broker.driver, "SELECT id FROM mails")).rows, []);
  } finally {
    connection.release();
    callback.destroy();
    await pool.end();
  }
});

function isRefusal(error: unknown): true {
  assert(error instanceof TypeError, String(error));
  assert.match(error.message, /^Cannot publish in this transaction: give .* not a pool/);
  return true;
}

async function ownDatabase(
  server: string,
  open: (address: string) => ClientInTest<MysqlTx>,
): Promise<ClientDatabase<MysqlTx> & { readonly name: string }> {
  const name = `holdfast_${crypto.randomUUID().replaceAll("-", "")}`;
  const administer = (text: string) =>
    withDriver(server, { connections: 1 }, async (driver) => void await query(driver, text));
  await administer(`CREATE DATABASE ${name}`);
  const address = new URL(server);
  address.pathname = `/${name}`;
  return {
    name,
    connect: () => mysql(address),
    startIds: `ALTER TABLE mails AUTO_INCREMENT = ${BEYOND_NUMBERS}`,
    firstId: BEYOND_NUMBERS,
    open: () => open(address.href),
    [Symbol.asyncDispose]: () => administer(`DROP DATABASE ${name}`),
  };
}
