import { describeValue } from "../describe_value.ts";
import { DeclarationError } from "../errors.ts";

/**
 * What is wrong with a name that is kept in a column of 190 characters; `undefined` if nothing is. MySQL
 * and MariaDB do not tell names apart that differ by spaces at their end.
 */
export function problemOfName(name: unknown): string | undefined {
  if (typeof name !== "string") return `is ${describeValue(name)}, not text`;
  if (name === "") return "is empty";
  if ([...name].length > LONGEST) return `has more than ${LONGEST} characters`;
  if (name.includes("\0") || !name.isWellFormed()) return "has NUL or half a character in it";
  if (name.endsWith(" ")) return "ends with a space";
  return undefined;
}

/**
 * Refuses a name that cannot be kept.
 *
 * @param what what was attempted, as the error begins
 * @param kind of what it is the name: `entity`
 * @throws {DeclarationError} with what is wrong with it
 */
export function checkName(what: string, kind: string, name: unknown): void {
  const problem = problemOfName(name);
  if (problem !== undefined) throw new DeclarationError(`${what}: its ${kind} ${problem}`);
}

const LONGEST = 190;
