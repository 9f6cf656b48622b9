import type { PayloadStorage } from "./driver/dialect.ts";

/**
 * The role `payload`: the column that holds the message, and how a message gets into it and out.
 * Made by `json`, `text`, `bytes` and `codec`.
 */
export interface Payload<in In, out Out = In> {
  /** The column. */
  readonly column: string;
  /** Whether the column holds text or bytes. */
  readonly storage: PayloadStorage;
  /** The stored form of a message; throws where it has none. */
  encode(message: In): Stored | Promise<Stored>;
  /** The message of a stored form; throws where it is not one. */
  decode(stored: Stored): Out | Promise<Out>;
}

/** A message as it stands in its column. */
export type Stored = string | Uint8Array;
