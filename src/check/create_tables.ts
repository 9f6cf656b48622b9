import type { Driver } from "../driver/driver.ts";
import type { AnyInbox } from "../inbox.ts";
import type { Pool } from "../pool.ts";

/** Creates each table that is absent, with its indexes, and leaves those alone that are there. */
export async function createTables(
  { dialect }: Driver,
  pool: Pool,
  inboxes: readonly AnyInbox[],
): Promise<void> {
  for (const { description } of inboxes) {
    await pool.transaction(async (transaction) => {
      const inspection = await transaction.query(dialect.inspect(description), undefined);
      if (inspection.length > 0) return;
      for (const text of dialect.ddl(description)) {
        await transaction.query({ text, params: [] }, undefined);
      }
    });
  }
}
