import type { TableDescription } from "./driver/dialect.ts";
import { ddl as mysqlDdl } from "./mysql/ddl.ts";
import { ddl as postgresDdl } from "./postgres/ddl.ts";
import { ddl as sqliteDdl } from "./sqlite/ddl.ts";

/** A database by its name in code. */
export type DatabaseName = "postgres" | "mysql" | "mariadb" | "sqlite";

/**
 * The statements that create a table and its indexes, as text. This is the one place where the core
 * knows the databases: a migration is written where none of them need be at hand.
 *
 * @throws {TypeError} if the database is not known
 */
export function ddlText(database: DatabaseName, table: TableDescription): string {
  if (!Object.hasOwn(DDL, database)) {
    throw new TypeError(
      `Cannot write "${table.table}" for ${JSON.stringify(database)}: give ${
        Object.keys(DDL).map((name) => `"${name}"`).join(", ")
      }`,
    );
  }
  return DDL[database](table).map((statement) => `${statement};\n`).join("");
}

const DDL: Readonly<Record<DatabaseName, (table: TableDescription) => readonly string[]>> = {
  postgres: postgresDdl,
  mysql: mysqlDdl,
  mariadb: mysqlDdl,
  sqlite: sqliteDdl,
};
