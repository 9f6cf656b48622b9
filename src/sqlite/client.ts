import type { QueryResult, SqlValue } from "../driver/driver.ts";

/** A SQLite library, brought to the few calls that the driver makes. All are synchronous. */
export interface SqliteClient {
  /** The library's name. */
  readonly library: string;
  /** The library's own handle of the database. */
  readonly handle: object;
  /** Whether a transaction is open on this connection, whoever opened it. */
  readonly inTransaction: boolean;
  /** Runs one statement; throws the library's own error. */
  query(text: string, params: readonly SqlValue[]): QueryResult;
  /** Frees the compiled statements. */
  release(): void;
  /** Closes the connection. */
  close(): void;
}
