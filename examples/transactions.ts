/**
 * An order and the mail about it, written together by the tools that services use: either both are
 * there or neither. Each function publishes first, since the order's row keeps the id of the mail.
 *
 * A message that is published so is seen by the next poll of its subscription: the broker does not
 * learn of the commit.
 */
import { type Broker, type Form, inbox, json, type MessageId, type Queue } from "@holdfast/inbox";
import type { MysqlTx } from "@holdfast/inbox/mysql";
import type { PostgresTx, QueryAdapter } from "@holdfast/inbox/postgres";
import type { SqliteTx } from "@holdfast/inbox/sqlite";
import { type SQL, sql as drizzleSql } from "drizzle-orm";
import type { MySql2Database } from "drizzle-orm/mysql2";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { CompiledQuery, type Kysely, type QueryResult } from "kysely";
import type { Pool } from "mysql2/promise";
import type { DatabaseSync } from "node:sqlite";
import type { Sql } from "postgres";

/** What a customer has ordered. */
export interface Order {
  /** Its number, of which there is one. */
  readonly id: number;
  /** What it is. */
  readonly item: string;
}

/** A broker, on a database whose clients have such transactions. */
export type Publisher<Tx> = Pick<Broker<string, Form, Tx>, "publish">;

/** What a mail is about. */
export interface Mail {
  /** The number of the order. */
  readonly order: number;
}

/** The mails to be sent. */
export const mails: Queue<Mail, Mail, "lease"> = inbox("mails", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  uniqueKey: "unique_key",
  payload: json<Mail>("payload"),
}).queue();

/** The service's own table; the key refuses an order that is there already. */
export const ORDERS = "CREATE TABLE orders (id BIGINT PRIMARY KEY, item VARCHAR(99), mail BIGINT)";

/** postgres.js: what `sql.begin` gives is the transaction. */
export async function publishWithPostgresJs(
  sql: Sql,
  broker: Publisher<PostgresTx>,
  { id, item }: Order,
): Promise<MessageId> {
  return await sql.begin(async (tx) => {
    const mail = await broker.publish(mails, { order: id }, { tx });
    await tx`INSERT INTO orders (id, item, mail) VALUES (${id}, ${item}, ${String(mail.id)})`;
    return mail.id;
  });
}

/** What is used of a `Client` of node-postgres (`npm:pg`), or of one that a pool has lent. */
export interface NodePostgresClient {
  /** Runs a statement. */
  query(text: string, params?: readonly unknown[]): Promise<{ readonly rows: unknown[] }>;
}

/** node-postgres: the client on which `BEGIN` was sent. Not a pool, whose clients take turns. */
export async function publishWithNodePostgres(
  client: NodePostgresClient,
  broker: Publisher<PostgresTx>,
  { id, item }: Order,
): Promise<MessageId> {
  await client.query("BEGIN");
  try {
    const mail = await broker.publish(mails, { order: id }, { tx: client });
    const text = "INSERT INTO orders (id, item, mail) VALUES ($1, $2, $3)";
    await client.query(text, [id, item, String(mail.id)]);
    await client.query("COMMIT");
    return mail.id;
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  }
}

/** mysql2: the connection on which the transaction was begun. Not the pool. */
export async function publishWithMysql2(
  pool: Pool,
  broker: Publisher<MysqlTx>,
  { id, item }: Order,
): Promise<MessageId> {
  const connection = await pool.getConnection();
  try {
    await connection.beginTransaction();
    const mail = await broker.publish(mails, { order: id }, { tx: connection });
    const text = "INSERT INTO orders (id, item, mail) VALUES (?, ?, ?)";
    await connection.execute(text, [id, item, String(mail.id)]);
    await connection.commit();
    return mail.id;
  } catch (error) {
    await connection.rollback();
    throw error;
  } finally {
    connection.release();
  }
}

/**
 * `node:sqlite`: the handle on which a transaction is open. `IMMEDIATE` waits for other writers here,
 * where nothing is lost yet. Nobody else can write until the `COMMIT`: await nothing slow before it.
 */
export async function publishWithNodeSqlite(
  database: DatabaseSync,
  broker: Publisher<SqliteTx>,
  { id, item }: Order,
): Promise<MessageId> {
  database.exec("BEGIN IMMEDIATE");
  try {
    const mail = await broker.publish(mails, { order: id }, { tx: database });
    const insert = database.prepare("INSERT INTO orders (id, item, mail) VALUES (?, ?, ?)");
    insert.run(id, item, mail.id);
    database.exec("COMMIT");
    return mail.id;
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
}

/** What the service has in its database, for Kysely. */
export interface Tables {
  /** The orders. */
  readonly orders: {
    readonly id: number;
    readonly item: string;
    readonly mail: string;
  };
}

/** A transaction of Kysely, on any database, as one that a message can be published in. */
export function kyselyTx(
  trx: { executeQuery(query: CompiledQuery): Promise<QueryResult<unknown>> },
): QueryAdapter {
  return { query: (text, params) => trx.executeQuery(CompiledQuery.raw(text, [...params])) };
}

/** Kysely, on any database. */
export async function publishWithKysely(
  db: Kysely<Tables>,
  broker: Publisher<QueryAdapter>,
  { id, item }: Order,
): Promise<MessageId> {
  return await db.transaction().execute(async (trx) => {
    const mail = await broker.publish(mails, { order: id }, { tx: kyselyTx(trx) });
    await trx.insertInto("orders").values({ id, item, mail: String(mail.id) }).execute();
    return mail.id;
  });
}

/** A transaction of Drizzle, on Postgres or MySQL, as one that a message can be published in. */
export function drizzleTx(tx: { execute(query: SQL): PromiseLike<unknown> }): QueryAdapter {
  return { query: (text, params) => tx.execute(toDrizzle(text, params)) };
}

/** Drizzle numbers the parameters itself, and is given text and values in turns. */
function toDrizzle(text: string, params: readonly unknown[]): SQL {
  let next = 0;
  // Every second part is a placeholder: `$1` on Postgres, which may stand in several places, or `?`.
  const parts = text.split(/(\$\d+|\?)/).map((part, index) => {
    if (index % 2 === 0) return drizzleSql.raw(part);
    return drizzleSql.param(params[part === "?" ? next++ : Number(part.slice(1)) - 1]);
  });
  return drizzleSql.join(parts);
}

/** Drizzle over postgres.js. */
export async function publishWithDrizzleOnPostgres(
  db: PostgresJsDatabase,
  broker: Publisher<PostgresTx>,
  { id, item }: Order,
): Promise<MessageId> {
  return await db.transaction(async (tx) => {
    const mail = await broker.publish(mails, { order: id }, { tx: drizzleTx(tx) });
    const values = drizzleSql`VALUES (${id}, ${item}, ${String(mail.id)})`;
    await tx.execute(drizzleSql`INSERT INTO orders (id, item, mail) ${values}`);
    return mail.id;
  });
}

/** Drizzle over mysql2. */
export async function publishWithDrizzleOnMysql(
  db: MySql2Database,
  broker: Publisher<MysqlTx>,
  { id, item }: Order,
): Promise<MessageId> {
  return await db.transaction(async (tx) => {
    const mail = await broker.publish(mails, { order: id }, { tx: drizzleTx(tx) });
    const values = drizzleSql`VALUES (${id}, ${item}, ${String(mail.id)})`;
    await tx.execute(drizzleSql`INSERT INTO orders (id, item, mail) ${values}`);
    return mail.id;
  });
}
