import { LONGEST_ERROR } from "./driver/roles.ts";

/**
 * The message of a failure as every database can hold it: a NUL, or half a character, would make the
 * very write fail that says that the message has failed.
 */
export function errorText(message: string | undefined): string | undefined {
  if (message === undefined) return undefined;
  return String(message).slice(0, LONGEST_ERROR).replaceAll("\0", "").toWellFormed();
}
