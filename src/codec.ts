import { PayloadError } from "./errors.ts";
import type { Payload, Stored } from "./payload.ts";
import { storableText, storedBytes, storedText } from "./stored.ts";

/** How a message becomes text and back. Either way may be asynchronous. */
export interface TextCodec<In, Out> {
  /** Keeps the payload as text; the default. */
  readonly storage?: "text";
  /** The stored form of a message. */
  encode(message: In): string | Promise<string>;
  /** The message of a stored form. */
  decode(stored: string): Out | Promise<Out>;
}

/** How a message becomes bytes and back. Either way may be asynchronous. */
export interface BytesCodec<In, Out> {
  /** Keeps the payload as bytes. */
  readonly storage: "bytes";
  /** The stored form of a message. */
  encode(message: In): Uint8Array | Promise<Uint8Array>;
  /** The message of a stored form. */
  decode(stored: Uint8Array): Out | Promise<Out>;
}

/**
 * A payload kept in a form of the service's own.
 *
 * @param column the column that holds it
 * @param codec how a message is encoded and decoded; an error thrown by either is a `PayloadError`
 */
export function codec<In, Out = In>(
  column: string,
  codec: TextCodec<In, Out> | BytesCodec<In, Out>,
): Payload<In, Out> {
  const storage = codec.storage ?? "text";
  if (storage !== "text" && storage !== "bytes") {
    throw new TypeError(
      `Cannot keep the payload "${column}" as ${
        String(storage)
      }: declare storage "text" or "bytes"`,
    );
  }
  return {
    column,
    storage,
    async encode(message: In): Promise<Stored> {
      const stored: unknown = await codec.encode(message);
      if (storage === "text" && typeof stored === "string") return storableText(stored);
      if (storage === "bytes" && stored instanceof Uint8Array) return stored;
      throw new PayloadError(
        `the codec gave ${typeof stored}; let encode give ` +
          (storage === "text" ? `a string, or declare storage: "bytes"` : "a Uint8Array"),
      );
    },
    async decode(stored: Stored): Promise<Out> {
      const asDeclared = storage === "text" ? storedText(stored) : storedBytes(stored);
      return await (codec.decode as (stored: Stored) => Out | Promise<Out>)(asDeclared);
    },
  };
}
