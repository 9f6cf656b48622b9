import { PayloadError } from "./errors.ts";

/**
 * A message as JSON text.
 *
 * @throws {PayloadError} if it has no JSON form, or one that stands for something else
 */
export function toJson(message: unknown): string {
  const text = JSON.stringify(message);
  if (text === undefined) {
    throw new PayloadError(
      `${typeof message} has no JSON form; give an object, a string, a number`,
    );
  }
  // Only these can stand for something else, and few messages have them.
  if (/null|\{\}/.test(text)) JSON.stringify(message, refuseLoss);
  return text;
}

/** JSON writes `null` or `{}` for what it has no form for. */
function refuseLoss(this: unknown, key: string, value: unknown): unknown {
  const original: unknown = Reflect.get(Object(this), key);
  const lost = typeof value === "number" && !Number.isFinite(value)
    ? String(value)
    : original instanceof Date && value === null
    ? "an invalid Date"
    : value instanceof Map || value instanceof Set
    ? `a ${value.constructor.name}`
    : Array.isArray(this) && ["undefined", "function", "symbol"].includes(typeof value)
    ? `${typeof value} in a list`
    : undefined;
  if (lost === undefined) return value;
  const place = key === "" ? "the message" : `"${key}"`;
  throw new PayloadError(`${place} is ${lost}, which has no JSON form; give one that has`);
}
