import { PayloadError } from "./errors.ts";
import type { Payload } from "./payload.ts";
import { storableText, storedText } from "./stored.ts";

/**
 * A payload that is text, kept as it is.
 *
 * @param column the column that holds it
 */
export function text(column: string): Payload<string> {
  return {
    column,
    storage: "text",
    encode(message: string): string {
      if (typeof message !== "string") {
        throw new PayloadError(`${typeof message} is not text; give a string`);
      }
      return storableText(message);
    },
    decode: storedText,
  };
}
