import { PayloadError } from "./errors.ts";
import type { Stored } from "./payload.ts";
import type { AnyQueue } from "./queue.ts";

/**
 * The stored form of a message to be published. Nothing has been written when it fails.
 *
 * @throws {PayloadError} if the message has none; it names the queue and the column
 */
export async function encodePayload(
  { name, inbox: { table, payload } }: AnyQueue,
  message: unknown,
): Promise<Stored> {
  try {
    return await payload.encode(message as never);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new PayloadError(
      `Cannot publish to queue "${name}", "${table}"."${payload.column}" cannot hold the message: ` +
        `${reason}; nothing was written`,
      { cause },
    );
  }
}
