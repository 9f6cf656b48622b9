import type { Driver } from "../../src/driver/driver.ts";
import { DeclarationError } from "../../src/errors.ts";
import { refuseUnknownOptions } from "../../src/refuse_unknown_options.ts";
import { asError } from "../../src/thrown.ts";
import type { DatabaseHost } from "./database_host.ts";
import { newDatabaseName } from "./database_name.ts";
import { hostOf } from "./host_of.ts";
import { sweep } from "./sweep.ts";
import { TemplateKeeper } from "./template_keeper.ts";
import { TestDatabase } from "./test_database.ts";

/** Where test databases are made, and what is in them. */
export interface TestDatabasesOptions<D extends Driver = Driver> {
  /**
   * The address of a server with a database that exists, from which the others are created:
   * `postgres://…/postgres`. On SQLite, whose databases are temporary files, `":memory:"` will do.
   */
  readonly url: string;
  /** Makes a driver for an address: `(url) => postgres(url)`. */
  readonly connect: (url: string) => D;
  /**
   * Makes what every test finds: migrations, rows. It runs in a database that the others are copied
   * from; the driver is open, and is closed afterwards. The default is an empty database.
   */
  readonly prepare?: (driver: D) => void | Promise<void>;
}

/**
 * A database for each test on a real server, so that tests that run in parallel, in one process or
 * in many, never see each other's rows.
 *
 * ```ts
 * import { sqlite } from "@holdfast/inbox/sqlite";
 * import { TestDatabases } from "@holdfast/inbox/testing";
 *
 * const databases = new TestDatabases({
 *   url: ":memory:", // or Deno.env.get("POSTGRES_URL"), with postgres(url)
 *   connect: (url) => sqlite(url),
 *   prepare: async (driver) => {
 *     const session = await driver.session();
 *     await session.query("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL)");
 *     await session.release();
 *   },
 * });
 *
 * // In each test:
 * {
 *   await using database = await databases.create();
 *   const driver = database.connect(); // for new Broker(driver), which opens and closes it
 *   await driver.open();
 *   const session = await driver.session();
 *   await session.query("INSERT INTO users (name) VALUES (?)", ["Ada"]);
 *   await session.release();
 *   await driver.close();
 * }
 *
 * // After all of them: Deno.test.afterAll(() => databases.close());
 * await databases.close();
 * ```
 *
 * `prepare` runs once; each database is a copy of what it made. On Postgres that is a template, on
 * SQLite a copy of the file. MySQL and MariaDB have no templates: tables are made anew as
 * `SHOW CREATE TABLE` tells them, foreign keys included, and their rows are copied; where `prepare`
 * made anything else, such as a view or a trigger, it runs again for every database. What belongs
 * to the server is not copied: users, grants, `ALTER DATABASE … SET`.
 *
 * Names begin with `holdfast_test_` and tell the time of their creation. What a killed process leaves
 * behind is dropped by the first `create` of a later one, once it is older than an hour and nobody is
 * connected to it.
 */
export class TestDatabases<D extends Driver = Driver> implements AsyncDisposable {
  readonly #connect: (url: string) => D;
  readonly #prepare: TestDatabasesOptions<D>["prepare"];
  readonly #host: DatabaseHost;
  readonly #keeper: TemplateKeeper;
  #sweeping: Promise<void> | undefined;

  /**
   * Declares where they are; nothing connects yet.
   *
   * @throws {DeclarationError} if the url is missing, or names no database of a server
   */
  constructor(options: TestDatabasesOptions<D>) {
    refuseUnknownOptions(CANNOT_MAKE, options, ["url", "connect", "prepare"]);
    const { url, connect, prepare } = options;
    if (typeof url !== "string" || url === "") {
      throw new DeclarationError(
        `${CANNOT_MAKE}: the url is ${JSON.stringify(url)}; is the environment variable set?`,
      );
    }
    this.#connect = connect;
    this.#prepare = prepare;
    this.#host = hostOf(url, connect);
    this.#keeper = new TemplateKeeper(this.#host, (name) => this.#prepareIn(name));
  }

  /**
   * Makes a database that nobody else has. Dispose of it at the end of the test, with `await using`.
   *
   * @throws {DeclarationError} if `prepare` throws; the cause is what it threw
   * @throws {LeakError} if `prepare` leaves connections open
   * @throws {DriverError} if the server refuses; where the user may not create databases, it names
   *   the grant that is needed
   */
  async create(): Promise<TestDatabase<D>> {
    await (this.#sweeping ??= sweep(this.#host));
    const name = newDatabaseName();
    try {
      await this.#make(name);
    } catch (error) {
      await this.#host.drop(name).catch(() => {});
      throw error;
    }
    return new TestDatabase(name, this.#host, this.#connect);
  }

  /** Drops the template, once no test needs another database; a later `create` makes a new one. */
  async close(): Promise<void> {
    await this.#keeper.close();
  }

  /** As `close`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #make(name: string): Promise<void> {
    if (this.#prepare === undefined) return await this.#host.create(name);
    const template = await this.#keeper.template();
    if (template !== undefined) return await template.copyTo(name);
    await this.#host.create(name);
    await this.#prepareIn(name);
  }

  async #prepareIn(name: string): Promise<void> {
    const driver = this.#connect(this.#host.url(name));
    await driver.open();
    try {
      await this.#prepare?.(driver);
    } catch (thrown) {
      const cause = asError(thrown, "prepare");
      throw new DeclarationError(
        `Cannot prepare the test database ${name}: ${cause.message}; mend the option prepare`,
        { cause },
      );
    } finally {
      await driver.close();
    }
  }
}

const CANNOT_MAKE = "Cannot make test databases";
