import { DeclarationError } from "./errors.ts";

/**
 * Refuses options that nobody would read: plain JavaScript, and a misspelt name, pass the types.
 *
 * @param what what was attempted, as the error begins: `Cannot make an app`
 * @throws {DeclarationError} if there are any
 */
export function refuseUnknownOptions(
  what: string,
  options: object | undefined,
  known: readonly string[],
): void {
  const unknown = Object.keys(options ?? {}).filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  throw new DeclarationError(
    `${what}: ${unknown.join(", ")} is not an option; options are ${known.join(", ")}`,
  );
}
