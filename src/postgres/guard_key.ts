import type { QueueUse, TableDescription } from "../driver/dialect.ts";
import { tableKey } from "./table_key.ts";

/** The key of the lock that guards the claims of a FIFO queue; nothing for other queues. */
export function guardKey(
  table: TableDescription,
  { group = "" }: QueueUse,
): { readonly guardKey?: string } {
  return table.fifo ? { guardKey: `${tableKey(table.table)}:${group}` } : {};
}
