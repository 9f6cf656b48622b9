import type { Driver } from "../driver/driver.ts";
import { run, type Steps } from "../driver/steps.ts";
import type { AnyInbox } from "../inbox.ts";
import type { Pool } from "../pool.ts";
import { readFacts } from "./read_facts.ts";

/** Creates each table that is absent, with its indexes, and leaves those alone that are there. */
export async function createTables(
  driver: Driver,
  pool: Pool,
  inboxes: readonly AnyInbox[],
): Promise<void> {
  for (const inbox of inboxes) await createTable(driver, pool, inbox);
}

async function createTable(driver: Driver, pool: Pool, inbox: AnyInbox): Promise<void> {
  if ((await readFacts(driver, pool, inbox)).exists) return;
  try {
    await pool.transaction(() => runAll(driver.dialect.ddl(inbox.description)));
  } catch (error) {
    // Another process may have been faster.
    if (!(await readFacts(driver, pool, inbox)).exists) throw error;
  }
}

function* runAll(texts: readonly string[]): Steps<void> {
  for (const text of texts) yield* run({ text, params: [] }, undefined);
}
