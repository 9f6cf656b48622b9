import { DriverError } from "../errors.ts";
import type { QueryResult, SqlValue } from "../driver/driver.ts";
import { giveWay, monotonic, pause } from "../driver/real_time.ts";
import type { SqliteClient } from "./client.ts";
import { enterExclusively, leaveExclusively } from "./exclusive_process.ts";
import { transactionHandle } from "./transaction_handle.ts";
import { LockRegistry, shareRegistry } from "./lock_registry.ts";
import { classify } from "./result_code.ts";
import { shareGate, unshareGate, WriterGate } from "./writer_gate.ts";

/** How hard a commit is pushed to the disk (sqlite.org/pragma.html#pragma_synchronous). */
export type Synchronous = "full" | "normal";

/** How a connection is set up when it is opened. */
export interface ConnectionSettings {
  /** The database as it is named in errors. */
  readonly label: string;
  /** Set on connections of our own; `undefined` leaves a caller's handle as it is. */
  readonly synchronous: Synchronous | undefined;
}

/**
 * An open database: one connection behind the gate that all connections of this process to the file
 * share. BUSY, which then only other processes cause, is waited for without blocking.
 */
export class SqliteConnection {
  readonly #client: SqliteClient;
  readonly #settings: ConnectionSettings;
  #file = "";
  #gate = new WriterGate();
  #locks = new LockRegistry();
  #isExclusive = false;
  #closed = false;

  /** Sets the connection up: WAL for a file of our own, and a check that it can be written. */
  static async open(
    client: SqliteClient,
    settings: ConnectionSettings,
  ): Promise<SqliteConnection> {
    const connection = new SqliteConnection(client, settings);
    try {
      await connection.#setUp();
    } catch (error) {
      connection.close();
      throw error;
    }
    return connection;
  }

  private constructor(client: SqliteClient, settings: ConnectionSettings) {
    this.#client = client;
    this.#settings = settings;
  }

  /** Resolves when no other transaction of this process is open on the database. */
  async enter(): Promise<void> {
    await this.#gate.enter();
    await giveWay();
  }

  /** Lets the next one enter. */
  leave(): void {
    this.#gate.leave();
  }

  /** How many wait for the transaction that is open, whoever of this process has opened it. */
  get waiting(): number {
    return this.#gate.waiting;
  }

  /** Does something in one turn, as soon as nobody else is in its way. */
  async whenFree<T>(attempt: () => T): Promise<T> {
    const end = monotonic() + LONGEST_WAIT;
    for (;;) {
      try {
        return attempt();
      } catch (error) {
        if (classify(error) !== "conflict" || monotonic() > end) throw error;
      }
      await pause(1, 20);
    }
  }

  /** Opens a transaction that may write. */
  begin(): void {
    this.#checkFree();
    this.run("BEGIN IMMEDIATE");
  }

  /** Runs one statement by itself. */
  runAlone(text: string, params: readonly SqlValue[] = []): QueryResult {
    this.#checkFree();
    return this.run(text, params);
  }

  /** Runs one statement of the transaction that is open. */
  run(text: string, params: readonly SqlValue[] = []): QueryResult {
    return this.#ask(() => this.#client.query(text, params), text);
  }

  /** The library's own handle, for as long as a transaction is open. */
  handleWhile(isOpen: () => boolean): object {
    return transactionHandle(this.#client.handle, () => {
      if (isOpen() && this.#client.inTransaction) return;
      throw new DriverError(
        "other",
        `Cannot use a transaction of ${this.#label}: it has ended; write before the message is settled`,
      );
    });
  }

  /** Whether a transaction is open, whoever opened it. */
  get inTransaction(): boolean {
    return this.#client.inTransaction;
  }

  /** Rolls back what is open, if the database has not done so by itself. */
  rollback(): void {
    if (!this.#closed && this.#client.inTransaction) this.run("ROLLBACK");
  }

  /** Who holds the lock of each key. */
  get locks(): LockRegistry {
    return this.#locks;
  }

  /** Lets no other process use locks of this database. One in memory is of this process anyway. */
  enableLocks(): void {
    if (this.#isExclusive || this.#file === "") return;
    enterExclusively(this.#file);
    this.#isExclusive = true;
  }

  /** Gives the gate back, and closes the connection unless it is a caller's handle. */
  close(): void {
    this.#closed = true;
    if (this.#isExclusive) leaveExclusively(this.#file);
    this.#isExclusive = false;
    if (this.#file !== "") unshareGate(this.#file);
    this.#file = "";
    this.#client.release();
    if (this.#settings.synchronous !== undefined) this.#client.close();
  }

  get #label(): string {
    return `the SQLite database ${this.#settings.label}`;
  }

  /** The owner of a handle may have a transaction of its own open on it. */
  #checkFree(): void {
    if (!this.#ask(() => this.#client.inTransaction)) return;
    throw new DriverError(
      "conflict",
      `Cannot use ${this.#label}: its owner keeps a transaction open on the handle; ` +
        `end it sooner, or give Holdfast a handle of its own`,
    );
  }

  async #setUp(): Promise<void> {
    await this.#runWhenFree("PRAGMA busy_timeout = 0");
    this.#file = await this.#joinGate();
    await this.enter();
    try {
      await this.#configure();
      await this.#checkWritable();
    } finally {
      this.leave();
    }
  }

  /** The file's full name with links resolved, empty for a database in memory. */
  async #joinGate(): Promise<string> {
    const { rows } = await this.#runWhenFree("PRAGMA database_list");
    const main = rows.find((row) => row.name === "main");
    const file = String(main?.file ?? "");
    if (file === "") return file;
    this.#gate = shareGate(file, this.#client.library);
    this.#locks = shareRegistry(file);
    return file;
  }

  async #configure(): Promise<void> {
    const { synchronous } = this.#settings;
    if (synchronous === undefined) return;
    if (this.#file !== "") await this.#runWhenFree("PRAGMA journal_mode = WAL");
    await this.#runWhenFree(`PRAGMA synchronous = ${synchronous}`);
  }

  #runWhenFree(text: string): Promise<QueryResult> {
    return this.whenFree(() => this.runAlone(text));
  }

  async #checkWritable(): Promise<void> {
    await this.whenFree(() => this.begin());
    try {
      // A read-only file lets a transaction begin; writing its own version back is refused.
      const version = this.run("PRAGMA user_version").rows[0]?.user_version ?? 0;
      this.run(`PRAGMA user_version = ${version}`);
    } finally {
      this.rollback();
    }
  }

  #ask<T>(question: () => T, text?: string): T {
    try {
      return question();
    } catch (error) {
      throw this.#describe(error, text);
    }
  }

  #describe(error: unknown, text = "none"): DriverError {
    const kind = classify(error);
    const reason = error instanceof Error ? error.message : String(error);
    const fix = FIXES[kind as keyof typeof FIXES] ?? `the statement was: ${text}`;
    return new DriverError(kind, `Cannot use ${this.#label}: ${reason}; ${fix}`, { cause: error });
  }
}

/** How long BUSY is waited for, in milliseconds, before it is reported. */
const LONGEST_WAIT = 1_000;

const FIXES = {
  "conflict": "another process holds its lock, let it commit sooner",
  "unusable": "check that the path names a SQLite database or a new file, and that this process " +
    "may write it and its folder",
  "read-only": "let this process write the file and its folder",
};
