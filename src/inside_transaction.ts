import { AsyncLocalStorage } from "node:async_hooks";
import { DeclarationError } from "./errors.ts";

/** A transaction of the code that is running, for as long as it is open. */
export interface Inside {
  /** Whose transaction it is. */
  readonly pool: unknown;
  /** Whether it is open now. */
  isOpen: boolean;
  /** The delivery whose handler is running, where it has a transaction. */
  readonly delivery?: InsideDelivery;
}

/** A delivery whose handler has a transaction, open or not yet. */
export interface InsideDelivery {
  /** Whether its handler has not ended: from then on its code runs beside it. */
  readonly isAtWork: boolean;
  /** Told what its handler was refused. */
  refused(error: Error): void;
}

const inside = new AsyncLocalStorage<Inside | undefined>();

/** Runs code of which it is known that it is inside a transaction while that is open. */
export function runInside<T>(place: Inside, work: () => T): T {
  return inside.run(place, work);
}

/** Runs code that does not belong to the transaction from inside of which it is called. */
export function runOutside<T>(work: () => T): T {
  return inside.run(undefined, work);
}

/** The delivery whose handler runs this code, where it has a transaction, open or not yet. */
export function insideDelivery(): InsideDelivery | undefined {
  return inside.getStore()?.delivery;
}

/**
 * Where all writers wait for one another, code inside a transaction that asks for another one would
 * wait for itself for ever.
 *
 * @throws {DeclarationError} if that is so
 */
export function refuseInside(pool: unknown): void {
  const place = inside.getStore();
  if (place === undefined || place.pool !== pool || !place.isOpen) return;
  const error = new DeclarationError(
    "Cannot use this database from inside its own open transaction, for which the call would wait " +
      "for ever: publish with { tx } or delivery.publish, or do it after the transaction",
  );
  place.delivery?.refused(error);
  throw error;
}
