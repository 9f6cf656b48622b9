import { isDeepStrictEqual } from "node:util";

/**
 * What a message is told by: a function that says whether it is one; an object some of whose properties
 * it has, at every depth; or else its equal. Arrays are to be equal in length.
 *
 * @typeParam T the message
 */
export type Match<T> = ((message: T) => boolean) | PartOf<T>;

/** Some properties of an object, at every depth. */
export type PartOf<T> = T extends readonly unknown[] ? { readonly [K in keyof T]: PartOf<T[K]> }
  : T extends Date | Uint8Array ? T
  : T extends object ? { readonly [K in keyof T]?: PartOf<T[K]> }
  : T;

/** Whether a message is what a match tells. */
export function matches<T>(message: T, match: Match<T>): boolean {
  if (typeof match === "function") return (match as (message: T) => boolean)(message);
  return hasPart(message, match);
}

function hasPart(value: unknown, part: unknown): boolean {
  if (Array.isArray(part)) {
    return Array.isArray(value) && value.length === part.length &&
      part.every((each, index) => hasPart(value[index], each));
  }
  if (!isRecord(part) || !isRecord(value)) return isDeepStrictEqual(value, part);
  return Object.entries(part).every(([key, each]) => key in value && hasPart(value[key], each));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  return !(value instanceof Date) && !ArrayBuffer.isView(value) &&
    !(prototype === Map.prototype || prototype === Set.prototype);
}
