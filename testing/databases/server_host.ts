import type { Driver, Session } from "../../src/driver/driver.ts";
import { DriverError } from "../../src/errors.ts";
import { LeakError } from "../leak_error.ts";
import type { DatabaseHost, Template } from "./database_host.ts";
import { NAME_PREFIX } from "./database_name.ts";
import type { OpenConnection, ServerSql } from "./server_sql.ts";
import { ServerUrl } from "./server_url.ts";
import { untilUnused } from "./until_unused.ts";

/**
 * Test databases on a server. Each call connects anew, to the database that the url names, so that
 * nothing stays open between tests.
 */
export class ServerHost implements DatabaseHost {
  readonly #address: ServerUrl;
  readonly #connect: () => Driver;
  readonly #sql: ServerSql;

  /**
   * @param url the address of a database on the server
   * @param connect makes a driver for it
   * @throws {DeclarationError} if the url names no database
   */
  constructor(url: string, connect: (url: string) => Driver, sql: ServerSql) {
    this.#address = new ServerUrl(url);
    this.#connect = () => connect(url);
    this.#sql = sql;
  }

  url(name: string): string {
    return this.#address.withDatabase(name);
  }

  create(name: string): Promise<void> {
    return this.#make(name, [this.#sql.create(name)]);
  }

  template(name: string): Promise<Template | undefined> {
    return this.#withSession(async (session) => {
      const connections = await this.#untilUnused(session, name);
      if (connections.length > 0) throw preparedAndLeaked(name, connections);
      const copy = await this.#sql.copyOf(session, name);
      return copy && { copyTo: (other) => this.#make(other, copy(other)) };
    });
  }

  drop(name: string): Promise<readonly string[]> {
    return this.#withSession(async (session) => {
      const connections = await this.#untilUnused(session, name);
      await this.#sql.drop(session, name, connections);
      return connections.map(({ description }) => description);
    });
  }

  unused(): Promise<readonly string[]> {
    return this.#withSession(async (session) => {
      const { rows } = await session.query(this.#sql.unused(NAME_PREFIX));
      return rows.map(({ name }) => String(name));
    });
  }

  #make(name: string, statements: readonly string[]): Promise<void> {
    return this.#withSession(async (session) => {
      try {
        for (const text of statements) await session.query(text);
      } catch (error) {
        if (!this.#sql.isRefused(error)) throw error;
        throw this.#refused(name, error, await this.#sql.grant(session, NAME_PREFIX));
      }
    });
  }

  #refused(name: string, error: unknown, grant: string): DriverError {
    return new DriverError(
      "unusable",
      `Cannot create the test database ${name} from ${this.#address.label}: the user may not ` +
        `create databases; let an administrator run: ${grant}`,
      { cause: error },
    );
  }

  #untilUnused(session: Session, name: string): Promise<readonly OpenConnection[]> {
    return untilUnused(() => this.#sql.connections(session, name));
  }

  async #withSession<T>(use: (session: Session) => Promise<T>): Promise<T> {
    const driver = this.#connect();
    await driver.open();
    try {
      const session = await driver.session();
      try {
        return await use(session);
      } finally {
        await session.release();
      }
    } finally {
      await driver.close();
    }
  }
}

function preparedAndLeaked(name: string, connections: readonly OpenConnection[]): LeakError {
  const lines = connections.map(({ description }) => `- ${description}`);
  return new LeakError(
    `Cannot copy the test database ${name}: prepare has returned, but left connections to it open; ` +
      `close what it opened:\n${lines.join("\n")}`,
  );
}
