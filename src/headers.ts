import { PayloadError } from "./errors.ts";
import { storableText } from "./stored.ts";

/** What is told about a message beside it: text by name. */
export type Headers = Readonly<Record<string, string>>;

/**
 * Headers as JSON text.
 *
 * @throws {PayloadError} if one is not text, or text that no database can hold; it names the header
 */
export function encodeHeaders(headers: Headers): string {
  if (!isPlainObject(headers)) {
    throw new PayloadError(`the headers are ${describe(headers)}; give { name: "text", … }`);
  }
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== "string") {
      throw new PayloadError(`the header ${JSON.stringify(name)} is ${typeof value}; give text`);
    }
    try {
      storableText(name);
      storableText(value);
    } catch (cause) {
      const reason = (cause as Error).message;
      throw new PayloadError(`of the header ${JSON.stringify(name)} ${reason}`, { cause });
    }
  }
  return JSON.stringify(headers);
}

/** A `Map`, or the `Headers` of a request, would seem to hold nothing. */
function isPlainObject(value: unknown): value is Headers {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function describe(value: unknown): string {
  return Object(value)?.constructor?.name ?? typeof value;
}

/**
 * The headers of stored JSON text; none where there is none.
 *
 * @throws {TypeError} if it is not the JSON text of headers
 */
export function decodeHeaders(stored: unknown): Headers {
  if (stored === undefined || stored === null || stored === "") return {};
  const headers: unknown = JSON.parse(
    stored instanceof Uint8Array ? new TextDecoder().decode(stored) : String(stored),
  );
  if (typeof headers === "object" && headers !== null && !Array.isArray(headers)) {
    const values = Object.values(headers);
    if (values.every((value) => typeof value === "string")) return headers as Headers;
  }
  throw new TypeError("it is no JSON object of texts");
}
