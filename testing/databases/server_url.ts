import { DeclarationError } from "../../src/errors.ts";

/** The address of a database on a server, and of its neighbours. No error shows the password. */
export class ServerUrl {
  /** The address without user, password and settings, for messages. */
  readonly label: string;
  readonly #server: string;
  readonly #settings: string;

  /**
   * Reads a URL: `postgres://user:password@host:port/database?settings`.
   *
   * @throws {DeclarationError} if it is no URL of a server, or names no database
   */
  constructor(url: string) {
    const [, server, database = "", settings = ""] = PARTS.exec(url) ?? [];
    if (server === undefined) {
      throw new DeclarationError(
        "Cannot make test databases: the url does not name a server; write it as " +
          "postgres://user:password@host:port/database",
      );
    }
    const place = server.replace(/^.*(@|:\/\/)/, "");
    if (database.length < 2) {
      throw new DeclarationError(
        `Cannot make test databases on "${place}": the url names no database; end it with the ` +
          `name of one that exists, from which the others are created`,
      );
    }
    this.label = `"${place}${database}"`;
    this.#server = server;
    this.#settings = settings;
  }

  /** The address of another database of the server, with the same user and settings. */
  withDatabase(name: string): string {
    return `${this.#server}/${name}${this.#settings}`;
  }
}

const PARTS = /^(\w+:\/\/[^/?#]*)(\/[^?#]*)?([?#].*)?$/s;
