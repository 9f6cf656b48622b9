import type { TableFacts } from "../driver/dialect.ts";
import type { Driver } from "../driver/driver.ts";
import { describeProblem, SchemaError, type SchemaProblem } from "../errors.ts";
import type { AnyInbox } from "../inbox.ts";
import { logOf } from "../log.ts";
import type { Pool } from "../pool.ts";
import { readFacts } from "./read_facts.ts";

/** A described table and the queue that needs it, if it is not only created. */
export interface TableUse {
  readonly inbox: AnyInbox;
  readonly subscription: string | undefined;
}

/**
 * What the database says about each table.
 *
 * @throws {SchemaError} with every problem of every table, if there is any
 */
export async function checkTables(
  driver: Driver,
  pool: Pool,
  uses: readonly TableUse[],
): Promise<ReadonlyMap<AnyInbox, TableFacts>> {
  const checked = new Map<AnyInbox, TableFacts>();
  const problems: SchemaProblem[] = [];
  for (const { inbox, subscription } of uses) {
    const found = await readFacts(driver, pool, inbox);
    checked.set(inbox, found);
    problems.push(...found.problems.map((problem) => ({ ...problem, subscription })));
    for (const warning of found.warnings) warn({ ...warning, subscription });
  }
  if (problems.length > 0) throw new SchemaError(problems);
  return checked;
}

function warn(warning: SchemaProblem): void {
  LOG.warn("A table should be looked at: {warning}", { warning: describeProblem(warning) });
}

const LOG = logOf("check");
