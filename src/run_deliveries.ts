import { backoff } from "./backoff.ts";
import type { Claim } from "./claim/claim_form.ts";
import { after, inDelivery, now } from "./clock.ts";
import { decodePayload, decodeRowHeaders } from "./decode_payload.ts";
import { type DeliveryContext, DeliveryInWork } from "./delivery_in_work.ts";
import { errorText } from "./error_text.ts";
import { AlreadySettledError, LeaseLostError, ShutdownError, TimeoutError } from "./errors.ts";
import { runInside } from "./inside_transaction.ts";
import { logOf } from "./log.ts";
import { isOutcome, retry } from "./outcome.ts";
import type { DeliveryRecord, Runtime } from "./runtime.ts";
import { canBury, type Decision, decisionOf, giveUp, isSpent } from "./settlement.ts";
import { asError } from "./thrown.ts";
import type { AnySubscription } from "./subscription.ts";

/** What deliveries work with. */
export interface DeliveriesContext extends DeliveryContext {
  readonly runtime: Runtime;
  /** Whether a handler that kills its process has spent an attempt. */
  readonly countsCrashes: boolean;
}

/** How deliveries went. */
export interface DeliveriesResult {
  readonly records: readonly DeliveryRecord[];
  /** The claims of each batch whose handler failed for all of its messages. */
  readonly failedTogether: readonly Claim[];
  /** What the app is to stop for. */
  readonly fatal?: Error;
}

/** One claim on its way. */
interface Work {
  readonly claim: Claim;
  readonly record: DeliveryRecord;
  /** Absent where no handler is to see the message. */
  delivery?: DeliveryInWork;
  decision?: Decision;
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
    const part = claims.map((claim) => start(claim, context));
    all.push(...part);
    if (await decideAll(part, context)) failedTogether.push(...claims);
  }
  await Promise.all(all.map((work) => end(work, context)));
  const fatal = all.find(({ decision }) => decision?.isFatal)?.decision?.error;
  return { records: all.map(({ record }) => record), failedTogether, fatal };
}

function start(claim: Claim, { subscription, runtime }: DeliveriesContext): Work {
  const record = startRecord(claim, subscription);
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
    message: undefined,
    outcome: undefined,
    error: undefined,
    settled: false,
    endedAt: undefined,
  };
}

/** Whether the handler failed for several at once. Its time is counted outside of its own scope. */
async function decideAll(part: readonly Work[], context: DeliveriesContext): Promise<boolean> {
  const ids = part.map(({ claim }) => claim.id).join(", ");
  const name = `message ${ids} of queue "${context.subscription.queue.name}"`;
  const timer = startTimer(part, context);
  try {
    return await inDelivery(name, () => decideInside(part, context));
  } finally {
    timer?.cancel();
  }
}

async function decideInside(part: readonly Work[], context: DeliveriesContext): Promise<boolean> {
  for (const work of part) await prepare(work, context);
  const handed = part.filter(({ decision }) => decision === undefined);
  if (handed.length === 0) return false;
  try {
    const returned = await handle(handed, context);
    for (const { delivery } of handed) await delivery!.untilSettled();
    for (const [index, work] of handed.entries()) {
      decide(
        work,
        context,
        () => afterReturn(outcomeOf(returned, index, handed, context), work, context),
      );
    }
    return false;
  } catch (thrown) {
    for (const work of handed) {
      await work.delivery!.untilSettled();
      decide(work, context, () => {
        throw thrown;
      });
    }
    return handed.length > 1;
  }
}

/** Decodes the message, unless its attempts are spent: its handler may have killed every process. */
async function prepare(work: Work, context: DeliveriesContext): Promise<void> {
  const { claim, record } = work;
  const { subscription, countsCrashes } = context;
  const { maxAttempts = Infinity } = subscription.options;
  const spent = (): Decision =>
    giveUp(subscription, claim.attempt! - 1, "its handler never came to an end");
  const isSpent = countsCrashes && (claim.attempt ?? 0) > maxAttempts;
  if (isSpent && canBury(subscription)) {
    work.decision = spent();
    return;
  }
  try {
    const headers = decodeRowHeaders(claim, subscription);
    record.message = await decodePayload(claim, subscription);
    // What cannot be decoded is kept, as often as it may have been tried.
    if (isSpent) work.decision = spent();
    else work.delivery = new DeliveryInWork(context, claim, headers);
  } catch (thrown) {
    const error = asError(thrown, "The codec");
    work.decision = afterFailure(error, work, context, "decode");
  }
}

async function handle(handed: readonly Work[], context: DeliveriesContext): Promise<unknown> {
  const { options, handle } = context.subscription;
  const deliveries = handed.map(({ delivery }) => delivery!);
  const [first] = deliveries as [DeliveryInWork];
  if (options.batch !== undefined) {
    return await handle(handed.map(({ record }) => record.message), deliveries);
  }
  if (!options.transactional) return await handle(handed[0]!.record.message, first);
  // Where there is one writer only, others wait for it: it is opened when it is asked for.
  if (!context.publisher.pool.hasOneWriter) await first.open();
  return await runInside(first.inside, async () => await handle(handed[0]!.record.message, first));
}

/** What the handler has returned for one of its messages. */
function outcomeOf(
  returned: unknown,
  index: number,
  handed: readonly Work[],
  { subscription }: DeliveriesContext,
): unknown {
  if (subscription.options.batch === undefined || !Array.isArray(returned)) return returned;
  if (returned.length === handed.length) return returned[index];
  throw new TypeError(
    `The handler of queue "${subscription.queue.name}" returned ${returned.length} outcomes for ` +
      `${handed.length} messages; return one for all, or one for each in order`,
  );
}

function decide(work: Work, context: DeliveriesContext, decision: () => Decision): void {
  const { queue } = context.subscription;
  try {
    work.decision = decision();
  } catch (thrown) {
    const error = asError(thrown, `The handler of queue "${queue.name}"`);
    work.decision = afterFailure(error, work, context, "error");
  }
}

function afterReturn(returned: unknown, work: Work, context: DeliveriesContext): Decision {
  const { subscription } = context;
  const delivery = work.delivery!;
  const { settledAs, signal } = delivery;
  if (settledAs !== undefined) {
    if (returned === undefined) return { outcome: settledAs, settlement: undefined };
    throw new AlreadySettledError(
      `The handler of queue "${delivery.queue}" settled message ${delivery.id} and then returned ` +
        `an outcome; return nothing after delivery.settle()`,
    );
  }
  // Returning is the usual way to heed the signal; only an outcome says that the work is done. What a
  // transactional handler has written by then is rolled back whatever it returns.
  if (signal.aborted && (returned === undefined || delivery.transactional)) {
    if (!(signal.reason instanceof ShutdownError)) throw signal.reason;
    return { outcome: retry(), settlement: { kind: "interrupt" } };
  }
  if (returned === undefined) {
    return { outcome: { kind: "ack" }, settlement: { kind: "remove", acked: true } };
  }
  if (isOutcome(returned)) return decisionOf(returned, subscription, delivery.attempt);
  throw new TypeError(
    `The handler of queue "${delivery.queue}" returned ${typeof returned} for message ` +
      `${delivery.id}; return ack(), retry(), retryAfter(…), drop(), deadLetter() or nothing`,
  );
}

/** A failure is delivered again after a growing delay, but one made by a shutdown at once. */
function afterFailure(
  error: Error,
  { claim, delivery }: Work,
  { subscription }: DeliveriesContext,
  what: "error" | "decode",
): Decision {
  if (delivery?.settledAs !== undefined) {
    return { outcome: delivery.settledAs, settlement: undefined, error };
  }
  if (claim.signal.reason instanceof ShutdownError) {
    return { outcome: retry(), settlement: { kind: "interrupt" }, error };
  }
  const { options } = subscription;
  const message = errorText(error.message) ?? "";
  switch (options.onFailure[what]) {
    case "drop":
      return {
        ...decisionOf({ kind: "drop", reason: message }, subscription, claim.attempt),
        error,
      };
    case "dead-letter":
      return {
        ...decisionOf({ kind: "deadLetter", reason: message }, subscription, claim.attempt),
        error,
      };
    case "fail-fast":
      return { outcome: retry(), settlement: { kind: "interrupt" }, error, isFatal: true };
    case "retry": {
      // Nobody could tell what was lost if a message that nobody can read were dropped.
      const mayGiveUp = what === "error" || canBury(subscription);
      if (isSpent(subscription, claim.attempt) && mayGiveUp) {
        return { ...giveUp(subscription, claim.attempt, message), error };
      }
      const delay = backoff(claim.attempt ?? 1, options.backoff);
      return { outcome: retry(), settlement: { kind: "delay", delay, error: message }, error };
    }
  }
}

/** The signals of handlers that take too long abort. */
function startTimer(
  part: readonly Work[],
  { subscription: { queue, options: { timeout } } }: DeliveriesContext,
): { cancel(): void } | undefined {
  if (timeout === undefined) return undefined;
  return after(timeout, () => {
    for (const { claim } of part) {
      claim.abort(
        new TimeoutError(
          `The handler of queue "${queue.name}" has taken longer than ${timeout} ms for message ` +
            `${claim.id}; heed delivery.signal, or give a longer timeout`,
        ),
      );
    }
  });
}

async function end(work: Work, context: DeliveriesContext): Promise<void> {
  const { claim, record, delivery } = work;
  const decision = work.decision!;
  record.outcome = decision.outcome;
  record.error = decision.error;
  await settle(claim, decision, record, context.subscription);
  if (record.settled) delivery?.ended(decision.outcome);
  record.endedAt = now();
  context.runtime.observe({ type: "settled", delivery: record });
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
    logGivenUp(record, subscription);
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
function logGivenUp(record: DeliveryRecord, { options }: AnySubscription): void {
  const { queue, id, outcome } = record;
  if (outcome?.kind !== "drop" && outcome?.kind !== "deadLetter") return;
  const what = outcome.kind === "drop" ? "dropped" : "dead-lettered";
  const values = { queue, id, what, reason: outcome.reason };
  const message = "Message {id} of {queue} is {what}: {reason}";
  // Nobody has asked for it, and nothing of the message is left.
  const isLoss = outcome.kind === "drop" && record.error !== undefined &&
    options.onFailure.error !== "drop" && options.onFailure.decode !== "drop";
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
