import { AFTER_FAILURE, backoff } from "./backoff.ts";
import type { Claim, Settlement } from "./claim/claim_form.ts";
import { inDelivery, now } from "./clock.ts";
import { decodePayload } from "./decode_payload.ts";
import { DeliveryInWork, type States } from "./delivery_in_work.ts";
import { AlreadySettledError, LeaseLostError, ShutdownError } from "./errors.ts";
import { logOf } from "./log.ts";
import { isOutcome, type Outcome, retry } from "./outcome.ts";
import type { DeliveryRecord, Runtime } from "./runtime.ts";
import { settlementOf } from "./settlement.ts";
import { asError } from "./thrown.ts";
import type { AnySubscription, Handler } from "./subscription.ts";

/** What was decided about a message, and what that does to its row. */
interface Decision {
  readonly outcome: Outcome;
  /** `undefined` where the handler has settled its message itself. */
  readonly settlement: Settlement | undefined;
  readonly error?: Error;
}

/** Decodes a claimed message, hands it to its handler, and settles it. Never rejects. */
export async function runDelivery(
  claim: Claim,
  subscription: AnySubscription,
  states: States,
  runtime: Runtime,
): Promise<DeliveryRecord> {
  const queue = subscription.queue.name;
  const record = startRecord(claim, subscription);
  runtime.observe({ type: "started", delivery: record });
  const decision = await inDelivery(`message ${claim.id} of queue "${queue}"`, async () => {
    const delivery = new DeliveryInWork(subscription, claim, states);
    return await decide(delivery, claim, subscription, record);
  });
  record.outcome = decision.outcome;
  record.error = decision.error;
  await settle(claim, decision, record);
  record.endedAt = now();
  runtime.observe({ type: "settled", delivery: record });
  return record;
}

function startRecord(claim: Claim, subscription: AnySubscription): DeliveryRecord {
  return {
    subscription,
    queue: subscription.queue.name,
    id: claim.id,
    attempt: claim.attempt,
    startedAt: now(),
    message: undefined,
    outcome: undefined,
    error: undefined,
    settled: false,
    endedAt: undefined,
  };
}

async function decide(
  delivery: DeliveryInWork,
  claim: Claim,
  subscription: AnySubscription,
  record: DeliveryRecord,
): Promise<Decision> {
  try {
    record.message = await decodePayload(claim, subscription);
    const handle = subscription.handle as Handler<unknown>;
    const returned: unknown = await handle(record.message, delivery);
    await delivery.untilSettled();
    return afterReturn(returned, delivery, subscription);
  } catch (thrown) {
    await delivery.untilSettled();
    return afterError(asError(thrown, `The handler of queue "${delivery.queue}"`), delivery);
  }
}

function afterReturn(
  returned: unknown,
  delivery: DeliveryInWork,
  subscription: AnySubscription,
): Decision {
  const { settledAs } = delivery;
  if (settledAs !== undefined) {
    if (returned === undefined) return { outcome: settledAs, settlement: undefined };
    throw new AlreadySettledError(
      `The handler of queue "${delivery.queue}" settled message ${delivery.id} and then returned ` +
        `an outcome; return nothing after delivery.settle()`,
    );
  }
  // Returning is the usual way to heed the signal; only an outcome says that the work is done.
  if (returned === undefined && delivery.signal.aborted) {
    return { outcome: retry(), settlement: { kind: "interrupt" } };
  }
  if (returned === undefined) return { outcome: { kind: "ack" }, settlement: { kind: "remove" } };
  if (isOutcome(returned)) {
    return { outcome: returned, settlement: settlementOf(returned, subscription) };
  }
  throw new TypeError(
    `The handler of queue "${delivery.queue}" returned ${typeof returned} for message ` +
      `${delivery.id}; return ack(), retry(), retryAfter(…), drop(), deadLetter() or nothing`,
  );
}

/** A failure is delivered again after a growing delay, but one made by a shutdown at once. */
function afterError(error: Error, delivery: DeliveryInWork): Decision {
  if (delivery.settledAs !== undefined) {
    return { outcome: delivery.settledAs, settlement: undefined, error };
  }
  const settlement: Settlement = delivery.signal.reason instanceof ShutdownError
    ? { kind: "interrupt" }
    : { kind: "delay", delay: backoff(delivery.attempt ?? 1, AFTER_FAILURE) };
  return { outcome: retry(), settlement, error };
}

/** That a message was given up is told, with the reason, of which nothing else is left. */
function logGivenUp({ queue, id, outcome }: DeliveryRecord): void {
  if (outcome?.kind !== "drop" && outcome?.kind !== "deadLetter") return;
  const what = outcome.kind === "drop" ? "dropped" : "dead-lettered";
  LOG.info("Message {id} of {queue} is {what}: {reason}", {
    queue,
    id,
    what,
    reason: outcome.reason,
  });
}

async function settle(claim: Claim, decision: Decision, record: DeliveryRecord): Promise<void> {
  // What an aborted handler throws says nothing new.
  if (decision.error !== undefined && !claim.signal.aborted) log(record, decision.error, "failed");
  try {
    if (decision.settlement !== undefined) await claim.settle(decision.settlement);
    record.settled = true;
    logGivenUp(record);
  } catch (thrown) {
    record.error = asError(thrown, "The settle");
    log(record, record.error, "was not settled");
    await comeBackLater(claim, record);
  }
}

/** A row that cannot be settled as was decided is to be delivered again, but not at once. */
async function comeBackLater(claim: Claim, { attempt }: DeliveryRecord): Promise<void> {
  try {
    if (claim.held) {
      await claim.settle({ kind: "delay", delay: backoff(attempt ?? 1, AFTER_FAILURE) });
    }
  } catch {
    claim.letGo();
  }
}

function log(record: DeliveryRecord, error: Error, what: string): void {
  const { queue, id, attempt } = record;
  const values = { queue, id, attempt, what, error };
  const message = "Delivery of message {id} of {queue} {what}: {error}";
  if (error instanceof LeaseLostError) LOG.warn(message, values);
  else LOG.error(message, values);
}

const LOG = logOf("delivery");
