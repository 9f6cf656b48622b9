import { backoff } from "./backoff.ts";
import type { Claim } from "./claim/claim_form.ts";
import { now } from "./clock.ts";
import type { DeliveriesContext, Work } from "./decide_deliveries.ts";
import { errorText } from "./error_text.ts";
import { LeaseLostError, TimeoutError } from "./errors.ts";
import { logOf } from "./log.ts";
import type { DeliveryRecord } from "./runtime.ts";
import type { Decision } from "./settlement.ts";
import type { AnySubscription } from "./subscription.ts";
import { asError } from "./thrown.ts";

/** Carries the decision about a message out, and records how that went. Never rejects. */
export async function settleDelivery(work: Work, context: DeliveriesContext): Promise<void> {
  const { claim, record, delivery } = work;
  const decision = work.decision!;
  record.outcome = decision.outcome;
  record.error = decision.error;
  const isOpen = decision.settlement !== undefined;
  if (isOpen) await context.runtime.reach("before settle", record);
  await settle(claim, decision, record, context.subscription);
  delivery?.tell(record.settled ? decision.outcome : undefined);
  record.endedAt = now();
  context.runtime.observe({ type: "settled", delivery: record });
  if (isOpen) await context.runtime.reach("after settle", record);
}

async function settle(
  claim: Claim,
  decision: Decision,
  record: DeliveryRecord,
  subscription: AnySubscription,
): Promise<void> {
  // What an aborted handler throws says nothing new, but that it took too long.
  const isNews = !claim.signal.aborted || decision.error instanceof TimeoutError;
  if (decision.error !== undefined && isNews) log(record, decision.error, "failed");
  try {
    if (decision.settlement !== undefined) await claim.settle(decision.settlement);
    record.settled = true;
    logGivenUp(record, decision);
  } catch (thrown) {
    record.error = asError(thrown, "The settle");
    log(record, record.error, "was not settled");
    await comeBackLater(claim, record, subscription);
  }
}

/** A row that cannot be settled as was decided is to be delivered again, but not at once. */
async function comeBackLater(
  claim: Claim,
  { attempt, error }: DeliveryRecord,
  { options }: AnySubscription,
): Promise<void> {
  try {
    if (error instanceof LeaseLostError) return claim.letGo();
    await claim.comeBack(backoff(attempt ?? 1, options.backoff), errorText(error?.message) ?? "");
  } catch {
    claim.letGo();
  }
}

/** That a message was given up is told, with the reason, of which perhaps nothing else is left. */
function logGivenUp({ queue, id, outcome }: DeliveryRecord, { isLoss }: Decision): void {
  if (outcome?.kind !== "drop" && outcome?.kind !== "deadLetter") return;
  const what = outcome.kind === "drop" ? "dropped" : "dead-lettered";
  const values = { queue, id, what, reason: outcome.reason };
  const message = "Message {id} of {queue} is {what}: {reason}";
  if (isLoss) LOG.error(message, values);
  else LOG.info(message, values);
}

function log(record: DeliveryRecord, error: Error, what: string): void {
  const { queue, id, attempt } = record;
  const values = { queue, id, attempt, what, error };
  const message = "Delivery of message {id} of {queue} {what}: {error}";
  if (error instanceof LeaseLostError) LOG.warn(message, values);
  else LOG.error(message, values);
}

const LOG = logOf("delivery");
