import type { Burial, Failure, MessageId } from "../driver/dialect.ts";
import { run, type Steps } from "../driver/steps.ts";
import { DriverError } from "../errors.ts";
import { logOf } from "../log.ts";

/**
 * Moves a row to the dead letter, in a transaction.
 *
 * @returns whether the row was still the caller's; otherwise nothing was changed
 */
export function* runBurial<At extends { readonly id: MessageId }>(
  [first, ...others]: Burial<At>,
  values: At & Failure & { readonly newId?: MessageId },
): Steps<boolean> {
  const { rows, changes } = yield* run(first!, values);
  if (rows.length + changes === 0) return false;
  if (Number(rows[0]?.moved ?? 1) === 0) warn(values.id);
  for (const [index, statement] of others.entries()) {
    const written = yield* run(statement, values);
    const count = written.rows.length + written.changes;
    if (count > 0) continue;
    // The last removes the row; what is before it copies the row, of which an equal one may be there.
    if (index < others.length - 1) warn(values.id);
    else throw notRemoved(values.id);
  }
  return true;
}

function warn(id: MessageId): void {
  LOG.warn(
    "Message {id} is in the dead letter already, under the same key: it is not moved twice",
    {
      id,
    },
  );
}

function notRemoved(id: MessageId): DriverError {
  return new DriverError(
    "other",
    `Cannot move message ${id} to the dead letter: it was copied but could not be removed, and ` +
      `nothing was changed; let nothing else delete it in the same transaction`,
  );
}

const LOG = logOf("delivery");
