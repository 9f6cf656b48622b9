import type { Session } from "../../src/driver/driver.ts";

/** What differs between servers about their databases. Names of databases need no quotes. */
export interface ServerSql {
  /** Makes an empty database. */
  create(name: string): string;
  /**
   * What makes a copy of a database.
   *
   * @returns `undefined` where something in it cannot be copied
   */
  copyOf(session: Session, template: string): Promise<CopyStatements | undefined>;
  /** Who is connected to a database. */
  connections(session: Session, name: string): Promise<readonly OpenConnection[]>;
  /** Drops a database, if it is there, and ends its connections. */
  drop(session: Session, name: string, connections: readonly OpenConnection[]): Promise<void>;
  /** Lists, as `name`, the databases that begin with the prefix and that nobody is connected to. */
  unused(prefix: string): string;
  /** Whether an error says that the user may not do this. */
  isRefused(error: unknown): boolean;
  /** What lets the user make databases that begin with the prefix. */
  grant(session: Session, prefix: string): Promise<string>;
}

/** The statements that make a copy under this name. */
export type CopyStatements = (name: string) => readonly string[];

/** A connection to a database. */
export interface OpenConnection {
  /** Its number at the server. */
  readonly id: number;
  /** Whose it is, what it does, and what it last did. */
  readonly description: string;
}
