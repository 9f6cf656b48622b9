import type { Claim } from "./claim/claim_form.ts";
import { PayloadError } from "./errors.ts";
import type { AnySubscription } from "./subscription.ts";

/**
 * The message of a claimed row.
 *
 * @throws {PayloadError} if the stored payload is none; it names the column and the row
 */
export async function decodePayload(
  { id, payload }: Pick<Claim, "id" | "payload">,
  { queue }: AnySubscription,
): Promise<unknown> {
  const { table, payload: codec } = queue.inbox;
  try {
    if (typeof payload === "string" || payload instanceof Uint8Array) {
      return await codec.decode(payload);
    }
    throw new TypeError(`it is ${payload === null ? "NULL" : `the ${typeof payload} ${payload}`}`);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new PayloadError(
      `Cannot decode "${table}"."${codec.column}" of message ${id} (queue "${queue.name}"): ${reason}; ` +
        `the row is kept, mend or delete it`,
      { cause },
    );
  }
}
