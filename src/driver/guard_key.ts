import type { QueueUse, TableDescription } from "./dialect.ts";

/**
 * The key of the lock that guards the claims of a FIFO queue; nothing for other queues.
 *
 * @param table the table's one name, however the description writes it
 */
export function guardKey(
  { fifo }: TableDescription,
  table: string,
  { group = "" }: QueueUse,
): { readonly guardKey?: string } {
  return fifo ? { guardKey: `${table}:${group}` } : {};
}
