import { numberOf } from "./classify.ts";

/**
 * Whether an INSERT failed because a row has the key of one of these unique indexes already. MySQL
 * names the index with its table before it, MariaDB without.
 */
export function isTaken(error: unknown, uniqueIndexes: readonly string[]): boolean {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  if (numberOf(cause) !== DUPLICATE) return false;
  const message = cause instanceof Error ? cause.message : "";
  return uniqueIndexes.some((name) =>
    name !== "PRIMARY" && (message.endsWith(`'${name}'`) || message.endsWith(`.${name}'`))
  );
}

/** ER_DUP_ENTRY */
const DUPLICATE = 1062;
