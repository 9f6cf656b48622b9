import type { Driver } from "../../src/driver/driver.ts";
import { DeclarationError } from "../../src/errors.ts";
import type { DatabaseHost } from "./database_host.ts";
import { mysqlSql } from "./mysql_sql.ts";
import { postgresSql } from "./postgres_sql.ts";
import { ServerHost } from "./server_host.ts";
import { SqliteHost } from "./sqlite_host.ts";

/**
 * Where the test databases of a driver are; nothing connects yet.
 *
 * @throws {DeclarationError} if the url names no database, or `connect` makes no known driver
 */
export function hostOf(url: string, connect: (url: string) => Driver): DatabaseHost {
  const name: unknown = connect(url)?.name;
  switch (name) {
    case "SQLite":
      return new SqliteHost(connect);
    case "Postgres":
      return new ServerHost(url, connect, postgresSql);
    case "MySQL":
    case "MariaDB":
      return new ServerHost(url, connect, mysqlSql);
  }
  throw new DeclarationError(
    `Cannot make test databases of ${String(name)}: let connect return a driver of Postgres, ` +
      `MySQL, MariaDB or SQLite, such as postgres(url)`,
  );
}
