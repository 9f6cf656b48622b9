import { ClosedError, DeclarationError } from "../errors.ts";

/** A delivery whose handler has a transaction: `subscribe({ transactional: true }, …)`. */
export interface TransactionalDelivery {
  /** That it is so. */
  readonly transactional: true;
}

/** The transaction of a delivery. */
export interface DeliveryTransaction {
  /** The database's name. */
  readonly database: string;
  /** What its clients call the transaction; `undefined` while it is not open. */
  readonly handle: unknown;
  /** Opens it, unless it is open, and gives the same. */
  open(): Promise<unknown>;
}

const transactions = new WeakMap<object, DeliveryTransaction>();

/** Makes a delivery's transaction known to the functions that give it to handlers. */
export function setTransaction(delivery: object, transaction: DeliveryTransaction): void {
  transactions.set(delivery, transaction);
}

/**
 * The transaction of a delivery.
 *
 * @param name the function that asks, as it stands in errors
 * @throws {DeclarationError} if the delivery has none, or it is one of another database
 */
export function transactionOf(
  delivery: TransactionalDelivery,
  name: string,
  databases: readonly string[],
): DeliveryTransaction {
  const transaction = transactions.get(delivery);
  if (transaction === undefined) {
    throw new DeclarationError(
      `Cannot get the transaction of this delivery by ${name}: it has none; ` +
        `subscribe with { transactional: true }`,
    );
  }
  if (databases.includes(transaction.database)) return transaction;
  throw new DeclarationError(
    `Cannot get the transaction of this delivery by ${name}: it is one of ${transaction.database}`,
  );
}

/**
 * The handle of a transaction that is open.
 *
 * @throws {ClosedError} if it has ended
 */
export function openHandle({ handle }: DeliveryTransaction, name: string): unknown {
  if (handle !== undefined) return handle;
  throw new ClosedError(
    `Cannot get the transaction of this delivery by ${name}: it has ended; use it before the ` +
      `message is settled`,
  );
}
