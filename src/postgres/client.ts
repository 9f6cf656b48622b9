/** A statement of postgres.js. It is sent once it is awaited. */
export interface PostgresQuery extends PromiseLike<unknown> {
  /** Has the values come as the bytes that the server sent. */
  raw(): PromiseLike<unknown>;
}

/** What statements are sent through: a client of postgres.js, or a transaction of one. */
export interface PostgresStatements {
  /** Sends SQL text. */
  unsafe(
    text: string,
    params?: unknown[],
    options?: { prepare: boolean; simple: boolean },
  ): PostgresQuery;
  /** A parameter whose type is given. */
  typed(value: string | null, type: number): unknown;
}

/** A client of postgres.js (`npm:postgres`), as much of it as Holdfast needs. */
export interface PostgresSql extends PostgresStatements {
  /** Runs `work` in a transaction. */
  begin(
    options: string,
    work: (transaction: PostgresStatements) => Promise<unknown>,
  ): Promise<unknown>;
}

/** What a client that listens tells. */
export interface ListeningSqlEvents {
  /** Somebody has notified. */
  onnotify(channel: string, payload: string): void;
  /** A connection was closed. */
  onclose(): void;
}

/** A client of one connection, on which is listened. */
export interface ListeningSql {
  /** Sends SQL text. */
  unsafe(text: string): PromiseLike<unknown>;
  /** Closes the connection, after so many seconds at the latest. */
  end(options: { timeout: number }): Promise<void>;
}

/** A client that Holdfast has made, and ends. */
export interface OwnSql extends PostgresSql {
  /** Lets its connections finish for so many seconds, and closes them. */
  end(options: { timeout: number }): Promise<void>;
}
