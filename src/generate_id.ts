import type { MessageId } from "./driver/dialect.ts";
import { PublishError } from "./errors.ts";
import type { AnyQueue } from "./queue.ts";
import { asError } from "./thrown.ts";

/**
 * The id of a new message, where the service makes it.
 *
 * @param what what it is for, as it stands in errors: `publish to`
 * @throws {PublishError} if `generate` of the table fails, or gives what no column can hold
 */
export function generateId({ name, inbox }: AnyQueue, what: string): MessageId | undefined {
  if (inbox.generateId === undefined) return undefined;
  const cannot = `Cannot ${what} queue "${name}": generate of "${inbox.table}"`;
  let id: unknown;
  try {
    id = inbox.generateId();
  } catch (thrown) {
    const cause = asError(thrown, "generate");
    throw new PublishError(`${cannot} failed: ${cause.message}`, { cause });
  }
  if (typeof id === "bigint" || typeof id === "string" && isStorable(id)) return id;
  throw new PublishError(
    `${cannot} gave ${typeof id} ${
      JSON.stringify(id) ?? ""
    }; let it give a bigint, or text that is ` +
      `not empty, has no NUL and is well-formed`,
  );
}

function isStorable(id: string): boolean {
  return id !== "" && !id.includes("\0") && id.isWellFormed();
}
