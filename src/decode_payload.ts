import type { Claim } from "./claim/claim_form.ts";
import { PayloadError } from "./errors.ts";
import { decodeHeaders, type Headers } from "./headers.ts";
import type { AnySubscription } from "./subscription.ts";
import { asError } from "./thrown.ts";

/**
 * The message of a claimed row.
 *
 * @throws {PayloadError} if the stored payload is none; it names the column and the row
 */
export async function decodePayload(
  { id, content: { payload, row } }: Pick<Claim, "id" | "content">,
  { queue }: AnySubscription,
): Promise<unknown> {
  const { payload: codec } = queue.inbox;
  const column = "kind" in codec ? undefined : codec.column;
  try {
    if ("kind" in codec) return await codec.decodeRow(row ?? {});
    if (typeof payload === "string" || payload instanceof Uint8Array) {
      return await codec.decode(payload);
    }
    throw new TypeError(`it is ${payload === null ? "NULL" : `the ${typeof payload} ${payload}`}`);
  } catch (cause) {
    throw undecodable(queue, id, column, cause);
  }
}

/**
 * The headers of a claimed row.
 *
 * @throws {PayloadError} if the stored headers are none; it names the column and the row
 */
export function decodeRowHeaders(
  { id, content: { headers } }: Pick<Claim, "id" | "content">,
  { queue }: AnySubscription,
): Headers {
  try {
    return decodeHeaders(headers);
  } catch (cause) {
    throw undecodable(queue, id, queue.inbox.description.headers, cause);
  }
}

function undecodable(
  { name, inbox: { table } }: AnySubscription["queue"],
  id: Claim["id"],
  column: string | undefined,
  cause: unknown,
): PayloadError {
  const place = column === undefined ? `"${table}"` : `"${table}"."${column}"`;
  return new PayloadError(
    `Cannot decode ${place} of message ${id} (queue "${name}"): ` +
      `${asError(cause, "the codec").message}; the row is kept, mend or delete it`,
    { cause },
  );
}
