import {
  openHandle,
  type TransactionalDelivery,
  transactionOf,
} from "../driver/delivery_transaction.ts";
import type { JoinedTransaction, QueryAdapter } from "../driver/driver.ts";
import { isQueryAdapter, joinAdapter } from "../driver/query_adapter.ts";
import type { PostgresStatements } from "./client.ts";
import { send } from "./values.ts";

/** A transaction of postgres.js, as `sql.begin` gives it; as much of it as Holdfast needs. */
export interface PostgresTransaction extends PostgresStatements {
  /** Runs a statement that is written as a template, whose values become its parameters. */
  // deno-lint-ignore no-explicit-any -- what postgres.js gives is typed by the caller
  <Row = any>(text: TemplateStringsArray, ...values: any[]): PromiseLike<Row[]>;
  /** Runs work that can be undone by itself. */
  savepoint(work: (sql: PostgresTransaction) => unknown): Promise<unknown>;
}

/** What a message can be published in: a transaction of postgres.js, or of any client by an adapter. */
export type PostgresTx = PostgresTransaction | QueryAdapter;

/**
 * The transaction of a transactional handler, as postgres.js knows it: what is written through it is
 * committed together with the end of the message, or not at all.
 *
 * ```ts ignore
 * const pay = payments.subscribe({ transactional: true }, async ({ account, cents }, delivery) => {
 *   const sql = postgresTx(delivery);
 *   await sql`UPDATE accounts SET cents = cents - ${cents} WHERE id = ${account}`;
 *   return ack();
 * });
 * ```
 *
 * @throws {DeclarationError} if the delivery has no transaction, or one of another database
 */
export function postgresTx(delivery: TransactionalDelivery): PostgresTransaction {
  return openHandle(
    transactionOf(delivery, "postgresTx", ["Postgres"]),
    "postgresTx",
  ) as PostgresTransaction;
}

/** Lets statements run in a transaction that the caller has opened. */
export function joinTransaction(tx: PostgresTx, prepare: boolean): JoinedTransaction {
  const { unsafe, savepoint } = Object(tx) as Partial<PostgresTransaction>;
  if (typeof unsafe === "function" && typeof savepoint === "function") {
    const sql = tx as PostgresTransaction;
    return {
      async query(text, params) {
        const { rows, changes } = await send(sql, text, params, prepare);
        return { rows, changes };
      },
    };
  }
  if (typeof unsafe !== "function" && isQueryAdapter(tx) && !isPool(tx)) return joinAdapter(tx);
  throw new TypeError(
    "Cannot publish in this transaction: give the one that sql.begin of postgres.js gives, " +
      "not the client itself, or { query(text, params) } for that of another client, not for a pool",
  );
}

/** A pool of node-postgres has `query` as its clients have, but runs each statement on any of them. */
function isPool(tx: QueryAdapter): boolean {
  return typeof (tx as Partial<Record<"totalCount", unknown>>).totalCount === "number";
}
