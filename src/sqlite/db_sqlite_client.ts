import { DriverError } from "../errors.ts";
import type { QueryResult, SqlRow, SqlValue } from "../driver/driver.ts";
import type { SqliteClient } from "./client.ts";

/** What is used of a `Database` of `jsr:@db/sqlite`. */
export interface DbSqliteHandle {
  /** Whether integers are read in 64 bits. Holdfast sets it. */
  int64: boolean;
  /** Whether a transaction is open. */
  readonly inTransaction: boolean;
  /** Compiles a statement. */
  prepare(sql: string): DbSqliteStatement;
  /** Closes the database. */
  close(): void;
}

/** What is used of a statement of `jsr:@db/sqlite`. */
export interface DbSqliteStatement {
  /** The names of the columns it returns. */
  columnNames(): string[];
  /** Runs it and returns its rows. */
  all(...params: SqlValue[]): unknown[];
  /** Runs it and returns how many rows it wrote. */
  run(...params: SqlValue[]): number;
  /** Frees the compiled statement. */
  finalize(): void;
}

/** Opens a database with `jsr:@db/sqlite`, which is loaded here and nowhere else. */
export async function openDbSqliteClient(location: string): Promise<SqliteClient> {
  const { Database } = await loadDbSqlite(location);
  return new DbSqliteClient(new Database(location, { int64: true }));
}

async function loadDbSqlite(location: string): Promise<DbSqliteModule> {
  try {
    return await import("jsr:@db/sqlite@^0.13.0") as unknown as DbSqliteModule;
  } catch (cause) {
    throw new DriverError(
      "unusable",
      `Cannot open ${JSON.stringify(location)} with jsr:@db/sqlite, which did not load: ` +
        `make JSR reachable, or use sqlite(${JSON.stringify(location)})`,
      { cause },
    );
  }
}

interface DbSqliteModule {
  Database: new (path: string, options: { int64: boolean }) => DbSqliteHandle;
}

/** `jsr:@db/sqlite`, which cuts integers to 32 bits unless told otherwise. */
export class DbSqliteClient implements SqliteClient {
  readonly library = "@db/sqlite";
  readonly #handle: DbSqliteHandle;
  readonly #statements = new Map<string, { statement: DbSqliteStatement; returnsRows: boolean }>();

  constructor(handle: DbSqliteHandle) {
    this.#handle = handle;
    handle.int64 = true;
    this.#probeIntegers();
  }

  get handle(): object {
    return this.#handle;
  }

  get inTransaction(): boolean {
    return this.#handle.inTransaction;
  }

  query(text: string, params: readonly SqlValue[]): QueryResult {
    const { statement, returnsRows } = this.#statements.get(text) ?? this.#prepare(text);
    if (returnsRows) return { rows: statement.all(...params) as SqlRow[], changes: 0 };
    return { rows: [], changes: statement.run(...params) };
  }

  release(): void {
    for (const { statement } of this.#statements.values()) statement.finalize();
    this.#statements.clear();
  }

  close(): void {
    this.#handle.close();
  }

  #prepare(text: string): { statement: DbSqliteStatement; returnsRows: boolean } {
    const statement = this.#handle.prepare(text);
    const prepared = { statement, returnsRows: statement.columnNames().length > 0 };
    this.#statements.set(text, prepared);
    return prepared;
  }

  #probeIntegers(): void {
    const { rows } = this.query("SELECT 9007199254740993 AS probe", []);
    if (rows[0]?.probe === 9007199254740993n) return;
    throw new DriverError(
      "unusable",
      `Cannot use this @db/sqlite database: it read the integer 9007199254740993 as ` +
        `${rows[0]?.probe}; open it with { int64: true }`,
    );
  }
}
