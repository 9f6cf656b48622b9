import type { Driver } from "../driver/driver.ts";
import type { AnyInbox } from "../inbox.ts";
import type { Pool } from "../pool.ts";
import { readFacts } from "./read_facts.ts";

/** Creates each table that is absent, with its indexes, and leaves those alone that are there. */
export async function createTables(
  driver: Driver,
  pool: Pool,
  inboxes: readonly AnyInbox[],
): Promise<void> {
  for (const inbox of inboxes) {
    await pool.transaction(async (transaction) => {
      const { exists } = await readFacts(driver, transaction, inbox);
      if (exists) return;
      for (const text of driver.dialect.ddl(inbox.description)) {
        await transaction.query({ text, params: [] }, undefined);
      }
    });
  }
}
