import { type TransactionalDelivery, transactionOf } from "../driver/delivery_transaction.ts";
import type { JoinedTransaction, QueryAdapter } from "../driver/driver.ts";
import { isQueryAdapter, joinAdapter } from "../driver/query_adapter.ts";
import { DbSqliteClient, type DbSqliteHandle } from "./db_sqlite_client.ts";
import type { SqliteClient } from "./client.ts";
import { NodeClient, type NodeSqliteHandle } from "./node_client.ts";

/**
 * What a message can be published in: a `DatabaseSync` of `node:sqlite` or a `Database` of
 * `jsr:@db/sqlite` on which a transaction is open, or that of any client by an adapter.
 */
export type SqliteTx = NodeSqliteHandle | DbSqliteHandle | QueryAdapter;

/**
 * The transaction of a transactional handler, as the database's handle: what is written through it is
 * committed together with the end of the message, or not at all. It is opened by the first call, since
 * all others who write wait while it is open; it may stay open for half the shortest lease.
 *
 * ```ts ignore
 * const pay = payments.subscribe({ transactional: true }, async ({ account, cents }, delivery) => {
 *   const receipt = await print(account, cents);
 *   const database = await sqliteTx(delivery);
 *   database.prepare("UPDATE accounts SET cents = cents - ? WHERE id = ?").run(cents, account);
 *   return ack();
 * });
 * ```
 *
 * @typeParam Handle what the app's driver was made with: `DatabaseSync`, or `Database`
 * @throws {DeclarationError} if the delivery has no transaction, or one of another database
 */
export async function sqliteTx<Handle = NodeSqliteHandle>(
  delivery: TransactionalDelivery,
): Promise<Handle> {
  return await transactionOf(delivery, "sqliteTx", ["SQLite"]).open() as Handle;
}

/** Lets statements run in a transaction that the caller has opened. */
export function joinTransaction(tx: SqliteTx): JoinedTransaction {
  const { prepare } = Object(tx) as Partial<NodeSqliteHandle>;
  // Handles of other libraries have `prepare` too.
  if (typeof prepare !== "function" || !("isTransaction" in tx || "int64" in tx)) {
    if (isQueryAdapter(tx)) return joinAdapter(tx);
    throw new TypeError(
      "Cannot publish in this transaction: give the DatabaseSync of node:sqlite or the Database of " +
        "jsr:@db/sqlite on which it is open, or { query(text, params) } for another client",
    );
  }
  const client = clientOf(tx as NodeSqliteHandle | DbSqliteHandle);
  return {
    query(text, params) {
      if (client.inTransaction) return Promise.resolve(client.query(text, params));
      return Promise.reject(
        new TypeError(
          "Cannot publish in this transaction: none is open on the handle; begin one, and commit " +
            "it after the publish",
        ),
      );
    },
  };
}

function clientOf(handle: NodeSqliteHandle | DbSqliteHandle): SqliteClient {
  const known = clients.get(handle) ??
    ("int64" in handle ? new DbSqliteClient(handle) : new NodeClient(handle));
  clients.set(handle, known);
  return known;
}

/** Statements are compiled once for each handle. */
const clients = new WeakMap<object, SqliteClient>();
