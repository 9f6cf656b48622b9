/**
 * A table that is claimed by the service's own SQL, and whose lock other code of the service takes
 * too: transfers of an account are booked by a handler, while a month's end, elsewhere, closes the
 * account under the very same lock. What is not given as a statement stays built in.
 *
 * @module
 */

import { ack, App, Broker, type Inbox, inbox, type Row, row } from "@holdfast/inbox";
import { postgres, type PostgresDriver, postgresTx } from "@holdfast/inbox/postgres";

/** A row of `transfers`, as far as the handler needs it. */
export interface Transfer {
  readonly account: number;
  readonly cents: number;
}

/** The table as the service has it: nothing in it was made for a queue but `tries`. */
export const CREATE: readonly string[] = [
  `CREATE TABLE accounts (id bigint PRIMARY KEY, cents bigint NOT NULL, closed boolean NOT NULL)`,
  `CREATE TABLE transfers (
     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     account bigint NOT NULL REFERENCES accounts,
     cents bigint NOT NULL,
     state text NOT NULL DEFAULT 'new',
     tries integer NOT NULL DEFAULT 1
   )`,
];

/** The lock of an account, as all code of this service takes it. */
export const LOCK = "pg_try_advisory_lock(1, hashtext('account ' || $1::text))";

/** Transfers, handled one at a time for each account. */
export const transfers: Inbox<Row, Transfer, "advisory lock", number, "transfers"> = inbox(
  "transfers",
  { id: "id", attempt: "tries", payload: row<Transfer, Row>() },
  {
    advisoryLock: "{account}",
    statements: {
      // Large sums first, and none of an account that is closed.
      claim: `SELECT t.id, t.account FROM transfers AS t JOIN accounts AS a ON a.id = t.account
              WHERE t.state = 'new' AND NOT a.closed ORDER BY t.cents DESC, t.id LIMIT :limit`,
      lock: `SELECT pg_try_advisory_lock(1, hashtext('account ' || :key::text))`,
      unlock: `SELECT pg_advisory_unlock(1, hashtext('account ' || :key::text))`,
      ack: `UPDATE transfers SET state = 'booked' WHERE id = :id AND tries = :attempt`,
      drop: `UPDATE transfers SET state = 'refused' WHERE id = :id AND tries = :attempt`,
    },
  },
);

/** Books a transfer: the account's new balance and the transfer's end are one transaction. */
export const book = transfers.queue().subscribe(
  { transactional: true, workers: 4 },
  async ({ account, cents }, delivery) => {
    const sql = postgresTx(delivery);
    await sql`UPDATE accounts SET cents = cents + ${cents} WHERE id = ${account}`;
    return ack();
  },
);

/** The service over a database. */
export function service(database: PostgresDriver): App {
  return new App({ name: "bank" }).withBroker(new Broker(database).include(book));
}

if (import.meta.main) await service(postgres(Deno.args[0] ?? "postgres://localhost/bank")).run();
