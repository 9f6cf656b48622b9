import { PayloadError } from "./errors.ts";
import type { Stored } from "./payload.ts";

/** Text as it is, if every database can hold it. */
export function storableText(text: string): string {
  if (text.includes("\0")) {
    throw new PayloadError("the text has a NUL, at which databases refuse or cut it; take it out");
  }
  if (!text.isWellFormed()) {
    throw new PayloadError(
      "the text has a lone surrogate, which has no UTF-8; make it well-formed",
    );
  }
  return text;
}

/** Text that a column returned as text or, where it has no type of its own, as bytes. */
export function storedText(stored: Stored): string {
  return typeof stored === "string" ? stored : UTF_8.decode(stored);
}

/** Bytes that a column returned as bytes or, where somebody wrote text, as text. */
export function storedBytes(stored: Stored): Uint8Array {
  return typeof stored === "string" ? new TextEncoder().encode(stored) : stored;
}

/** A byte sequence that is not UTF-8 is an error, not a replacement character. */
const UTF_8 = new TextDecoder("utf-8", { fatal: true });
