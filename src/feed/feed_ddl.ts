import type { DatabaseName } from "../ddl_text.ts";
import type { FeedStatements, FeedTables } from "../driver/dialect.ts";
import { feedStatements as mysqlFeed } from "../mysql/feed.ts";
import { feedStatements as postgresFeed } from "../postgres/feed.ts";
import { feedStatements as sqliteFeed } from "../sqlite/feed.ts";

/**
 * The statements that create a feed's tables, as text: a migration is written where no database need be
 * at hand.
 *
 * @throws {TypeError} if the database is not known
 */
export function feedDdl(database: DatabaseName, tables: FeedTables): string {
  if (!Object.hasOwn(FEEDS, database)) {
    const known = Object.keys(FEEDS).map((name) => `"${name}"`).join(", ");
    throw new TypeError(
      `Cannot write the tables of a feed for ${JSON.stringify(database)}: give ${known}`,
    );
  }
  return Object.values(FEEDS[database](tables).ddl).map((text) => `${text};\n`).join("");
}

const FEEDS: Readonly<Record<DatabaseName, (tables: FeedTables) => FeedStatements>> = {
  postgres: postgresFeed,
  mysql: mysqlFeed,
  mariadb: mysqlFeed,
  sqlite: sqliteFeed,
};
