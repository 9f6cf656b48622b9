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

/** There is no transaction that could end, or have a lock. */
export function noTransaction(attempt: string): DriverError {
  return new DriverError("other", `Cannot ${attempt}: no transaction is open; begin one`);
}

/** The server says neither that the lock is taken nor that somebody else has it. */
export function lockUntold(): DriverError {
  return new DriverError(
    "other",
    "Cannot take a lock: the server does not tell whether it was taken; name a database where " +
      "you connect, and see to it that the server has memory left",
  );
}

/** The server has rolled back, so that the statement would be no part of the transaction. */
export function rolledBackBefore(attempt: string, cause: DriverError): DriverError {
  return new DriverError(
    cause.kind,
    `Cannot ${attempt}: the server may have rolled the whole transaction back when a statement ` +
      `failed, and nothing more was sent; roll back and do all of it again`,
    { cause },
  );
}

/** A statement has ended the transaction, as DDL does. */
export function endedUnseen(attempt: string): DriverError {
  return new DriverError(
    "other",
    `Cannot keep the transaction open: it was ended by this: ${attempt}; end a transaction with ` +
      `commit or rollback of the session, and keep DDL out of it`,
  );
}

/** The transaction was committed or rolled back at an earlier call. */
export function endedBefore(attempt: string): DriverError {
  return new DriverError("other", `Cannot ${attempt}: the transaction has ended; begin another`);
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

/** The server would not read it, and would close the connection. */
export function tooLarge(attempt: string, size: number, largest: number): DriverError {
  return new DriverError(
    "constraint",
    `Cannot ${attempt}: it takes ${size} bytes with its parameters, and the server reads no more ` +
      `than ${largest}; raise max_allowed_packet of the server`,
  );
}
