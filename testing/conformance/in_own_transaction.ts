import type { QueryAdapter } from "../../src/driver/driver.ts";
import type { TestDatabase } from "./test_database.ts";

/** Runs work in a transaction of the test's own client, which then ends it, as a caller may do. */
export async function inOwnTransaction(
  database: TestDatabase,
  work: (tx: QueryAdapter) => Promise<unknown>,
  end: "commit" | "rollback" = "commit",
): Promise<void> {
  const driver = database.connect();
  await driver.open();
  const session = await driver.session();
  try {
    await session.begin();
    await work({ query: (text, params) => session.query(text, params) });
    await session[end]();
  } finally {
    await session.release();
    await driver.close();
  }
}
