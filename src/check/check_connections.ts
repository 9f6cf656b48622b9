import type { Driver } from "../driver/driver.ts";
import { DeclarationError } from "../errors.ts";
import type { AnySubscription } from "../subscription.ts";

/**
 * Refuses a pool in which handlers could take every connection, and so keep settles, renewals and
 * publishes waiting for ever.
 */
export function checkConnections(
  { name, connections = Infinity }: Driver,
  subscriptions: readonly AnySubscription[],
): void {
  const needed = connectionsNeeded(subscriptions);
  if (connections >= needed) return;
  throw new DeclarationError(
    `Cannot run these subscriptions on ${connections} connections to ${name}: they need ${needed} ` +
      `(${subscriptions.map(describe).join(", ")}); give the driver more connections, or ` +
      `subscriptions fewer workers`,
  );
}

/**
 * A row that is locked holds a connection while its handler works, and two are left for all others; a
 * batch is locked by one transaction, but by a lock for each of its keys. Leases need three: for a
 * claim, a renewal and a settle at the same time, and one for each handler's transaction.
 */
function connectionsNeeded(subscriptions: readonly AnySubscription[]): number {
  const leases = subscriptions.some(({ queue }) => queue.inbox.form === "lease");
  const held = subscriptions.reduce((sum, subscription) => sum + connectionsHeld(subscription), 0);
  if (subscriptions.length === 0) return 1;
  return held + (leases ? 3 : 2);
}

function connectionsHeld({ queue, options }: AnySubscription): number {
  const { workers, batch = 1, transactional } = options;
  switch (queue.inbox.form) {
    case "row lock":
      return workers;
    case "advisory lock":
      return workers * batch;
    case "lease":
      return transactional ? workers : 0;
  }
}

function describe({ queue, options }: AnySubscription): string {
  const batch = options.batch === undefined ? "" : `, batches of ${options.batch}`;
  const transactional = options.transactional ? ", transactional" : "";
  return `"${queue.name}": ${queue.inbox.form}, ${options.workers} workers${batch}${transactional}`;
}
