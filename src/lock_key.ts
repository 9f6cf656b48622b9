import type { LockKeyPart } from "./driver/dialect.ts";
import { DeclarationError } from "./errors.ts";

/**
 * The parts of a key such as `accounts-{account_id}`: text, and the columns that stand in braces. A
 * key without any is one for all rows.
 *
 * @throws {DeclarationError} if it is empty or its braces do not match
 */
export function parseLockKey(table: string, template: unknown): readonly LockKeyPart[] {
  if (typeof template !== "string" || template === "") {
    throw refusal(table, template, "give text with columns in braces");
  }
  const parts = template.split(/(\{[^{}]*\})/).filter((part) => part !== "")
    .map((part): LockKeyPart => /^\{.*\}$/.test(part) ? { column: part.slice(1, -1) } : part);
  for (const part of parts) {
    if (typeof part !== "string" && part.column.trim() === "") {
      throw refusal(table, template, "name a column in each pair of braces");
    }
    if (typeof part === "string" && /[{}]/.test(part)) {
      throw refusal(table, template, "close each brace, and put columns only in braces");
    }
  }
  return parts;
}

function refusal(table: string, template: unknown, fix: string): DeclarationError {
  return new DeclarationError(
    `Cannot lock rows of "${table}" by the key ${JSON.stringify(template)}: ${fix}, ` +
      `such as "accounts-{account_id}"`,
  );
}
