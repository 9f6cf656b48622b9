import type { Claim } from "./claim/claim_form.ts";
import { now } from "./clock.ts";
import { decideDeliveries, type DeliveriesContext, type Work } from "./decide_deliveries.ts";
import type { DeliveryRecord } from "./runtime.ts";
import { settleDelivery } from "./settle_delivery.ts";
import type { AnySubscription } from "./subscription.ts";

/** How deliveries went. */
export interface DeliveriesResult {
  readonly records: readonly DeliveryRecord[];
  /** The claims of each batch whose handler failed for all of its messages. */
  readonly failedTogether: readonly Claim[];
  /** What the app is to stop for. */
  readonly fatal?: Error;
}

/**
 * Decodes claimed messages, hands them to the handler, one part after the other, and then settles each
 * message. Never rejects.
 *
 * @param parts what the handler gets at once: one message, or a batch of them
 */
export async function runDeliveries(
  parts: readonly (readonly Claim[])[],
  context: DeliveriesContext,
): Promise<DeliveriesResult> {
  const all: Work[] = [];
  const failedTogether: Claim[] = [];
  for (const claims of parts) {
    const part = await Promise.all(claims.map((claim) => start(claim, context)));
    all.push(...part);
    if (await decideDeliveries(part, context)) failedTogether.push(...claims);
  }
  await Promise.all(all.map((work) => settleDelivery(work, context)));
  const fatal = all.find(({ decision }) => decision?.isFatal)?.decision?.error;
  return { records: all.map(({ record }) => record), failedTogether, fatal };
}

async function start(claim: Claim, { subscription, runtime }: DeliveriesContext): Promise<Work> {
  const record = startRecord(claim, subscription);
  await runtime.reach("after claim", record);
  record.startedAt = now();
  runtime.observe({ type: "started", delivery: record });
  return { claim, record };
}

function startRecord(claim: Claim, subscription: AnySubscription): DeliveryRecord {
  return {
    subscription,
    queue: subscription.queue.name,
    id: claim.id,
    attempt: claim.attempt,
    startedAt: now(),
    batch: undefined,
    message: undefined,
    outcome: undefined,
    error: undefined,
    settled: false,
    endedAt: undefined,
  };
}
