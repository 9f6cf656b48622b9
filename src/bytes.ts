import { PayloadError } from "./errors.ts";
import type { Payload } from "./payload.ts";
import { storedBytes } from "./stored.ts";

/**
 * A payload of bytes, kept as they are.
 *
 * @param column the column that holds it
 */
export function bytes(column: string): Payload<Uint8Array> {
  return {
    column,
    storage: "bytes",
    encode(message: Uint8Array): Uint8Array {
      if (message instanceof Uint8Array) return message;
      throw new PayloadError(`${typeof message} is not bytes; give a Uint8Array`);
    },
    decode: storedBytes,
  };
}
