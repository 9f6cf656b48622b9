import type { DriverError } from "../errors.ts";

/** Who is told of what is notified in a database. */
export interface NotificationListener {
  /** Somebody has notified, in a transaction that is committed. */
  receive(payload: string): void;
  /** The connection is gone; it is made again, with pauses that grow. Told once for each loss. */
  lost(error: DriverError): void;
  /** The connection is there again: what was notified meanwhile was missed. */
  restored(): void;
}

/** A connection that listens. */
export interface Listening {
  /** Ends it. */
  close(): Promise<void>;
}
