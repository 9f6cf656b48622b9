/**
 * A value as a few words of an error, whatever it is: what it is, and of an object the names of its
 * properties, since its contents are not for a log.
 *
 * @throws whatever a proxy's trap throws
 */
export function describeValue(value: unknown): string {
  if (typeof value === "string") {
    return JSON.stringify(value.length > LONGEST ? `${value.slice(0, LONGEST)}…` : value);
  }
  if (typeof value === "function") return `the function ${value.name || "without a name"}`;
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return `an array of ${value.length}`;
  const keys = Object.keys(value);
  const shown = keys.slice(0, MOST_KEYS).join(", ");
  const rest = keys.length > MOST_KEYS ? ", …" : "";
  return keys.length === 0 ? "an object without properties" : `an object with ${shown}${rest}`;
}

const LONGEST = 40;
const MOST_KEYS = 5;
