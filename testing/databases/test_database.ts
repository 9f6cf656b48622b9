import type { Driver } from "../../src/driver/driver.ts";
import { LeakError } from "../leak_error.ts";
import type { DatabaseHost } from "./database_host.ts";

/** A database of one test, gone when the test ends. Made by `TestDatabases.create`. */
export class TestDatabase<D extends Driver = Driver> implements AsyncDisposable {
  /** Its name at the server, or that of its folder. */
  readonly name: string;
  /** Its address: the server's with its name, or the path of its file. */
  readonly url: string;
  readonly #host: DatabaseHost;
  readonly #connect: (url: string) => D;
  #dropping: Promise<void> | undefined;

  /** Of a database that is there. */
  constructor(name: string, host: DatabaseHost, connect: (url: string) => D) {
    this.name = name;
    this.url = host.url(name);
    this.#host = host;
    this.#connect = connect;
  }

  /** A driver for it, not open yet, with connections of its own: for a broker, or to be opened. */
  connect(): D {
    return this.#connect(this.url);
  }

  /**
   * Drops it, unless it has been dropped. Who is still connected is given 2 s to go.
   *
   * @throws {LeakError} if somebody was connected to the end; it is dropped all the same
   */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#dropping ??= this.#drop();
  }

  async #drop(): Promise<void> {
    const connections = await this.#host.drop(this.name);
    if (connections.length === 0) return;
    throw new LeakError(
      `The test database ${this.name} was dropped while it was still in use; stop the app, or ` +
        `close the client, before the test ends:\n- ${connections.join("\n- ")}`,
    );
  }
}
