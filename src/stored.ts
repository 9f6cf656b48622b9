import type { Stored } from "./payload.ts";

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
