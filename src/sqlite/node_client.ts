import { DatabaseSync } from "node:sqlite";
import type { QueryResult, SqlRow, SqlValue } from "../driver/driver.ts";
import type { SqliteClient } from "./client.ts";

/** What is used of `DatabaseSync`, so that a handle may come from any copy of the module. */
export interface NodeSqliteHandle {
  /** Whether a transaction is open. */
  readonly isTransaction: boolean;
  /** Compiles a statement. */
  prepare(sql: string): NodeSqliteStatement;
  /** Closes the database. */
  close(): void;
}

/** What is used of `StatementSync`. */
export interface NodeSqliteStatement {
  /** The columns it returns; none for a statement that returns no rows. */
  columns(): readonly unknown[];
  /** Runs it and returns its rows. */
  all(...params: SqlValue[]): unknown[];
  /** Runs it and returns how many rows it wrote. */
  run(...params: SqlValue[]): { changes: number | bigint };
  /** Whether integers are read as `bigint`. */
  setReadBigInts(enabled: boolean): unknown;
}

/** Opens a database with the runtime's own SQLite. A busy database fails at once, see the gate. */
export function openNodeClient(location: string): SqliteClient {
  return new NodeClient(new DatabaseSync(location, { timeout: 0 }));
}

/** `node:sqlite`, with each statement compiled once and integers read exactly. */
export class NodeClient implements SqliteClient {
  readonly library = "node:sqlite";
  readonly #handle: NodeSqliteHandle;
  readonly #statements = new Map<
    string,
    { statement: NodeSqliteStatement; returnsRows: boolean }
  >();

  constructor(handle: NodeSqliteHandle) {
    this.#handle = handle;
  }

  get handle(): object {
    return this.#handle;
  }

  get inTransaction(): boolean {
    return this.#handle.isTransaction;
  }

  query(text: string, params: readonly SqlValue[]): QueryResult {
    const { statement, returnsRows } = this.#statements.get(text) ?? this.#prepare(text);
    if (returnsRows) return { rows: statement.all(...params) as SqlRow[], changes: 0 };
    return { rows: [], changes: Number(statement.run(...params).changes) };
  }

  release(): void {
    this.#statements.clear();
  }

  close(): void {
    this.#handle.close();
  }

  #prepare(text: string): { statement: NodeSqliteStatement; returnsRows: boolean } {
    const statement = this.#handle.prepare(text);
    statement.setReadBigInts(true);
    const prepared = { statement, returnsRows: statement.columns().length > 0 };
    this.#statements.set(text, prepared);
    return prepared;
  }
}
