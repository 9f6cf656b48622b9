import type { TableFacts } from "../driver/dialect.ts";
import type { Driver } from "../driver/driver.ts";
import { DriverError } from "../errors.ts";
import type { AnyInbox } from "../inbox.ts";
import type { OpenTransaction } from "../held_transaction.ts";

/** What the database says about a table. */
export async function readFacts(
  { dialect }: Driver,
  runner: Pick<OpenTransaction, "run">,
  { description }: AnyInbox,
): Promise<TableFacts> {
  try {
    const { rows } = await runner.run(dialect.inspect(description), undefined);
    return dialect.facts(description, rows);
  } catch (error) {
    // The schema that the table is said to be in may not exist.
    if (error instanceof DriverError && error.kind === "missing") {
      return dialect.facts(description, []);
    }
    throw error;
  }
}
