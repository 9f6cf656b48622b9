import { DriverError } from "../errors.ts";

/** The connection was lost at an earlier call. */
export function lostBefore(attempt: string, cause: DriverError | undefined): DriverError {
  return new DriverError(
    "disconnected",
    `Cannot ${attempt}: the connection of this transaction was lost, and nothing more was sent; ` +
      `release the session and take another`,
    { cause },
  );
}

/** An earlier call commits the transaction, or has ended it. */
export function notOpen(attempt: string, state: "committing" | "ended"): DriverError {
  return new DriverError(
    "other",
    state === "ended"
      ? `Cannot ${attempt}: the transaction has ended; begin another`
      : `Cannot ${attempt}: the transaction is being committed; wait for that`,
  );
}

/** What needs a transaction came without one. */
export function noTransaction(attempt: string): DriverError {
  return new DriverError("other", `Cannot ${attempt}: no transaction is open; begin one`);
}

/** No text of Postgres can hold the key. */
export function unfitKey(key: string): DriverError {
  return new DriverError(
    "other",
    `Cannot take the lock of the key ${JSON.stringify(key)}: it holds a NUL, which no text of ` +
      `Postgres can; leave it out`,
  );
}

/** The statement would take the connection from under the transaction. */
export function wouldEndUnseen(attempt: string): DriverError {
  return new DriverError(
    "other",
    `Cannot ${attempt}: the transaction would end unseen; call commit or rollback of the session`,
  );
}

/** The server answered COMMIT with ROLLBACK. */
export function nothingCommitted(cause: DriverError | undefined): DriverError {
  return new DriverError(
    cause?.kind ?? "other",
    "Cannot commit: a statement had failed, so that the server has rolled everything back; " +
      "when a statement fails, roll back to a savepoint or end the transaction",
    { cause },
  );
}

/** The answer to COMMIT did not arrive. */
export function outcomeUnknown(cause: DriverError): DriverError {
  return new DriverError(
    "disconnected",
    "Cannot tell whether the transaction was committed, its outcome is unknown: the connection " +
      "was lost while COMMIT was in flight; read what it has written before doing it again",
    { cause },
  );
}
