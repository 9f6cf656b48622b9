import type { FeedStatements, FeedTables } from "../driver/dialect.ts";
import { DeclarationError, DriverError, SchemaError, type SchemaProblem } from "../errors.ts";
import type { Pool } from "../pool.ts";
import { refuseUnknownOptions } from "../refuse_unknown_options.ts";

/** The tables of a feed by what they are for; the last one needs those before it least. */
export const TABLES: readonly (keyof FeedTables)[] = ["scopes", "events", "entities"];

/**
 * The names of a feed's tables: `worlds_scopes`, `worlds_events` and `worlds_entities` unless given.
 *
 * @throws {DeclarationError} if one has other characters than letters, digits and `_`
 */
export function feedTables(feed: string, given: Partial<FeedTables> = {}): FeedTables {
  refuseUnknownOptions(`Cannot declare the tables of feed "${feed}"`, given, TABLES);
  const tables = Object.fromEntries(
    TABLES.map((each) => [each, given[each] ?? `${feed}_${each}`]),
  ) as Record<keyof FeedTables, string>;
  for (const table of Object.values(tables)) {
    if (/^([A-Za-z_]\w*\.)?[A-Za-z_]\w*$/.test(table)) continue;
    throw new DeclarationError(
      `Cannot declare feed "${feed}" with the table ${JSON.stringify(table)}: give "table" or ` +
        `"schema.table", of letters, digits and _, by the option tables`,
    );
  }
  return tables;
}

/**
 * Creates those tables that are missing, if they are to be, and makes sure that all are there.
 *
 * @throws {SchemaError} with the statements that create what is missing
 */
export async function openFeedTables(
  pool: Pool,
  tables: FeedTables,
  statements: FeedStatements,
  isToCreate: boolean,
): Promise<void> {
  const problems: SchemaProblem[] = [];
  for (const each of TABLES) {
    let problem = await problemOf(pool, statements, each);
    if (problem !== undefined && isToCreate) {
      // Another process may be faster.
      const failure = await create(pool, statements.ddl[each]);
      problem = await problemOf(pool, statements, each);
      if (problem !== undefined && failure !== undefined) throw failure;
    }
    if (problem === undefined) continue;
    problems.push({
      table: tables[each],
      problem: `it cannot hold the ${each} of a feed: ${problem}`,
      fix: `create it, or start the feed with createTables: true:\n${statements.ddl[each]}`,
    });
  }
  if (problems.length > 0) throw new SchemaError(problems);
}

async function problemOf(
  pool: Pool,
  { probe }: FeedStatements,
  table: keyof FeedTables,
): Promise<string | undefined> {
  try {
    await pool.query(probe[table], undefined);
  } catch (error) {
    if (error instanceof DriverError && error.kind === "missing") return error.message;
    throw error;
  }
}

async function create(pool: Pool, text: string): Promise<unknown> {
  try {
    await pool.run({ text, params: [] }, undefined);
  } catch (error) {
    return error;
  }
}
