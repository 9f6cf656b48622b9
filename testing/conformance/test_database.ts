import type { TransactionalDelivery } from "../../src/driver/delivery_transaction.ts";
import type { Driver } from "../../src/driver/driver.ts";
import type { OwnStatements } from "../../src/own_statements.ts";

/** An empty database for one test, gone when the test ends. */
export interface TestDatabase extends AsyncDisposable {
  /** A driver with connections of its own, as each process has. */
  connect(): Driver;
  /** How a worker process reaches this database; none where other processes cannot. */
  readonly address: string | undefined;
  /** Cuts every connection to it at the server, where there is one. */
  readonly cut?: () => Promise<void>;
  /** Runs SQL in the transaction of a transactional handler, through the database's own client. */
  write(delivery: TransactionalDelivery, text: string): Promise<void>;
  /** Whether its SQL has `FOR UPDATE SKIP LOCKED`. */
  readonly locksRows: boolean;
  /** Whether an INSERT returns the id by `RETURNING id`. */
  readonly returnsIds: boolean;
  /** A lock of the service's own, where there is a server to hold it. */
  readonly sharedLock?: Pick<OwnStatements, "lock" | "unlock">;
  /** What of its SQL differs. */
  readonly sql: TestSql;
}

/** SQL of the suite that is not the same on every database. */
export interface TestSql {
  /** A time, in milliseconds since 1970, as a value of the expiry column. */
  time(time: number): string;
  /** The expiry column, so many seconds later. */
  later(seconds: number): string;
  /** An expression that takes so many seconds, where a server can wait. */
  sleep?(seconds: number): string;
  /** A SELECT of how many other sessions are connected to this database, as `sessions`. */
  readonly sessions?: string;
  /** A SELECT of how many sessions hold the lock of a key, as `held`, where a server can tell. */
  locks?(key: string): string;
}

/** What a driver has to do, tried on a database of its own. */
export interface ConformanceTest {
  /** What is promised, as a sentence. */
  readonly name: string;
  /** What the database must offer: a second connection, other processes on it, a server's locks. */
  readonly needs?: "connections" | "processes" | "row locks" | "a server";
  /** Rejects if the promise is broken. */
  readonly run: (database: TestDatabase) => Promise<void>;
}
