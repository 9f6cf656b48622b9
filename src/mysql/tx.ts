import {
  openHandle,
  type TransactionalDelivery,
  transactionOf,
} from "../driver/delivery_transaction.ts";
import type { JoinedTransaction, QueryAdapter, SqlValue } from "../driver/driver.ts";
import { isQueryAdapter, joinAdapter } from "../driver/query_adapter.ts";
import { encode } from "./values.ts";

/**
 * A connection of mysql2 with promises on which a transaction is open; as much of it as Holdfast
 * needs.
 */
export interface MysqlTransaction {
  /** Runs a statement that the server prepares; `[rows]`, or `[{ affectedRows, insertId }]`. */
  // deno-lint-ignore no-explicit-any -- what mysql2 gives is typed by the caller
  execute(sql: string, values?: any): Promise<any>;
}

/** What a message can be published in: a transaction of mysql2, or of any client by an adapter. */
export type MysqlTx = MysqlTransaction | QueryAdapter;

/**
 * The transaction of a transactional handler: what is written through it is committed together with
 * the end of the message, or not at all. It is used as a connection of `mysql2/promise` is, and also
 * notices when the server has rolled the transaction back, or a statement has committed it, as `CREATE
 * TABLE` does: then nothing more is sent, and the delivery fails. Integers of 64 bits are `bigint`,
 * times and decimals text.
 *
 * ```ts ignore
 * const pay = payments.subscribe({ transactional: true }, async ({ account, cents }, delivery) => {
 *   await mysqlTx(delivery)
 *     .execute("UPDATE accounts SET cents = cents - ? WHERE id = ?", [cents, account]);
 *   return ack();
 * });
 * ```
 *
 * @throws {DeclarationError} if the delivery has no transaction, or one of another database
 */
export function mysqlTx(delivery: TransactionalDelivery): MysqlTransaction {
  return openHandle(transactionOf(delivery, "mysqlTx", ["MySQL"]), "mysqlTx") as MysqlTransaction;
}

/** Lets statements run in a transaction that the caller has opened. */
export function joinTransaction(tx: MysqlTx): JoinedTransaction {
  const { execute } = Object(tx) as Partial<MysqlTransaction>;
  if (typeof execute === "function" && !isOther(tx)) {
    return joinAdapter({ query: (text, params) => execute.call(tx, text, params.map(encode)) });
  }
  if (typeof execute !== "function" && isQueryAdapter(tx)) {
    return joinAdapter({ query: (text, params) => tx.query(text, params.map(plain)) });
  }
  throw new TypeError(
    "Cannot publish in this transaction: give a connection of mysql2/promise on which it is open, " +
      "not a pool, or { query(text, params) } for that of another client",
  );
}

/**
 * What has `execute` too: a pool, which runs each statement on any connection; what of mysql2 calls
 * back, and has `promise()`; a transaction of Drizzle, whose `query` is no function.
 */
function isOther(tx: object): boolean {
  const { getConnection, promise, query } = tx as Readonly<Record<string, unknown>>;
  return getConnection !== undefined || promise !== undefined || typeof query === "object";
}

/** Not every client takes a `bigint`, and mysql2 no other bytes than those of a `Buffer`. */
function plain(value: SqlValue): SqlValue {
  if (value instanceof Uint8Array) return encode(value) as Uint8Array;
  if (typeof value !== "bigint") return value;
  const number = Number(value);
  return BigInt(number) === value ? number : String(value);
}
