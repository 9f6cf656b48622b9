/** A pool of `mysql2`, as much of it as Holdfast needs. */
export interface MysqlCallbackPool {
  /** Takes a connection from the pool. */
  getConnection(done: (error: Error | null, connection: unknown) => void): void;
}

/** A pool of `mysql2/promise`, as much of it as Holdfast needs. */
export interface MysqlPromisePool {
  /** The pool of `mysql2` that it stands for. */
  readonly pool: MysqlCallbackPool;
}

/** A pool that the service has made with `npm:mysql2`. */
export type MysqlPool = MysqlCallbackPool | MysqlPromisePool;

/** What the client calls with the outcome of a command. */
export type Done = (error: unknown, result?: unknown) => void;

/** A value of a row as it arrives, for a type cast. */
export interface Field {
  /** The type's name on the wire: `LONGLONG`. */
  readonly type: string;
  /** `json` where MariaDB says that a text is JSON. */
  readonly extendedFormat?: string;
  /** How many characters the column's values have at most. */
  readonly length: number;
  /** The value as text. */
  string(encoding?: string): string | null;
  /** The value as bytes. */
  buffer(): Uint8Array | null;
}

/** One run of a statement. Every option that changes rows is given: a caller's pool may have others. */
export interface Command {
  readonly sql: string;
  readonly values: readonly unknown[];
  readonly supportBigNumbers: true;
  readonly bigNumberStrings: true;
  readonly namedPlaceholders: false;
  readonly nestTables: false;
  readonly rowsAsArray: false;
  readonly typeCast: (field: Field, next: () => unknown) => unknown;
}

/** A connection of mysql2 with callbacks. */
export interface ClientConnection {
  /** What it was made with. */
  readonly config?: { readonly clientFlags?: number };
  /** Its number, as the server gave it when it was opened. */
  readonly threadId?: number | null;
  /** Its socket. */
  readonly stream: {
    destroy(): unknown;
    once(event: "close", listener: () => void): unknown;
    readonly closed: boolean;
  };
  /** Runs a statement as text. */
  query(command: Command, done: Done): unknown;
  /** Runs a statement that the server prepares, once for each connection. */
  execute(command: Command, done: Done): unknown;
  /** Asks whether the server is there. */
  ping(done: Done): unknown;
  /** Says goodbye, after all that has been sent. */
  end(done: Done): unknown;
  /** Ends the connection, and takes it out of its pool. */
  destroy(): void;
  /** Gives it back to its pool. */
  release?(): void;
  /** Calls back when something happens to it. */
  on(event: "error" | "end", listener: (error?: unknown) => void): unknown;
}

/** The rows of a statement that returns some, or what it has changed. */
export type ClientResult = readonly Record<string, unknown>[] | ClientChanges;

/** What the server says of a statement that returns no rows. */
export interface ClientChanges {
  readonly affectedRows: number | string;
  /** A signed integer, as text where it is large; 0 where the database has made no id. */
  readonly insertId: number | string;
  readonly serverStatus: number;
}
