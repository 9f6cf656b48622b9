import type { SqlValue } from "./driver/driver.ts";
import { HoldfastError, PayloadError } from "./errors.ts";
import { checkColumns } from "./publish_options.ts";
import type { AnyQueue } from "./queue.ts";
import { asError } from "./thrown.ts";

/** A message as it is written: to its one column, or to several where it is a row. */
export interface EncodedMessage {
  readonly payload: SqlValue;
  readonly columns: Readonly<Record<string, SqlValue>>;
}

/**
 * The stored form of a message to be published. Nothing has been written when it fails.
 *
 * @throws {PayloadError} if the message has none; it names the queue and the column
 * @throws {DeclarationError} if the message is a row, and sets a column that plays a role
 */
export async function encodePayload(queue: AnyQueue, message: unknown): Promise<EncodedMessage> {
  const { name, inbox: { table, payload } } = queue;
  const place = "kind" in payload ? `"${table}"` : `"${table}"."${payload.column}"`;
  try {
    if (!("kind" in payload)) {
      return { payload: await payload.encode(message as never), columns: {} };
    }
    const row = await payload.encodeRow(message as never);
    return {
      payload: null,
      columns: checkColumns(queue, row, `Cannot publish to queue "${name}"`),
    };
  } catch (cause) {
    if (cause instanceof HoldfastError && !(cause instanceof PayloadError)) throw cause;
    const reason = asError(cause, "the codec").message;
    throw new PayloadError(
      `Cannot publish to queue "${name}", ${place} cannot hold the message: ` +
        `${reason}; nothing was written`,
      { cause },
    );
  }
}
