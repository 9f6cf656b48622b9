import { backoff } from "./backoff.ts";
import type { Claim } from "./claim/claim_form.ts";
import { after, inDelivery } from "./clock.ts";
import { decodePayload, decodeRowHeaders } from "./decode_payload.ts";
import { type DeliveryContext, DeliveryInWork } from "./delivery_in_work.ts";
import { describeValue } from "./describe_value.ts";
import { errorText } from "./error_text.ts";
import { AlreadySettledError, ShutdownError, TimeoutError } from "./errors.ts";
import { runInside } from "./inside_transaction.ts";
import { isOutcome, retry } from "./outcome.ts";
import type { DeliveryRecord } from "./runtime.ts";
import { canBury, type Decision, decisionOf, giveUp, giveUpUnseen, isSpent } from "./settlement.ts";
import { asError } from "./thrown.ts";

/** What deliveries work with. */
export interface DeliveriesContext extends DeliveryContext {
  /** Whether a message is to be tried by itself, after a batch has failed, whatever its attempts. */
  readonly isAlone: (claim: Claim) => boolean;
}

/** One claim on its way. */
export interface Work {
  readonly claim: Claim;
  readonly record: DeliveryRecord;
  /** Absent where no handler is to see the message. */
  delivery?: DeliveryInWork;
  decision?: Decision;
}

/**
 * Decodes the messages of a part and hands them to the handler, and so decides about each. The
 * handler's time is counted outside of its own scope.
 *
 * @returns whether the handler failed for several at once
 */
export async function decideDeliveries(
  part: readonly Work[],
  context: DeliveriesContext,
): Promise<boolean> {
  const ids = part.map(({ claim }) => claim.id).join(", ");
  const name = `message ${ids} of queue "${context.subscription.queue.name}"`;
  const timer = startTimer(part, context);
  try {
    return await inDelivery(name, () => decideInside(part, context), context.publisher.pool);
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
    for (const { delivery } of handed) await delivery!.end();
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
      await work.delivery!.end();
      const error = asError(thrown, `The handler of queue "${context.subscription.queue.name}"`);
      // Which of several has made it fail is not known: each is to be tried by itself.
      if (handed.length > 1 && work.delivery!.settledAs === undefined) {
        work.decision = again(error, work, context);
      } else fail(error, work, context, "error");
    }
    return handed.length > 1;
  }
}

/**
 * Decodes the message, unless its attempts are spent: its handler may have killed every process, or
 * its settles may have failed.
 */
async function prepare(work: Work, context: DeliveriesContext): Promise<void> {
  const { claim, record } = work;
  const { subscription } = context;
  const { maxAttempts = Infinity } = subscription.options;
  const spent = (): Decision => giveUpUnseen(subscription, claim);
  const isSpent = (claim.attempt ?? 0) > maxAttempts && !context.isAlone(claim);
  if (isSpent && canBury(subscription)) return decide(work, context, spent);
  try {
    const headers = decodeRowHeaders(claim, subscription);
    record.message = await decodePayload(claim, subscription);
    // What cannot be decoded is kept, as often as it may have been tried.
    if (isSpent) decide(work, context, spent);
    else work.delivery = new DeliveryInWork(context, work, headers);
  } catch (thrown) {
    const error = asError(thrown, "The codec");
    fail(error, work, context, "decode");
  }
}

async function handle(handed: readonly Work[], context: DeliveriesContext): Promise<unknown> {
  const { options, handle } = context.subscription;
  const deliveries = handed.map(({ delivery }) => delivery!);
  const [first] = deliveries as [DeliveryInWork];
  const batch = deliveries.map(({ id }) => id);
  for (const { record } of handed) record.batch = batch;
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
  const outcomes = returned.length === 1 ? "1 outcome" : `${returned.length} outcomes`;
  const messages = handed.length === 1 ? "1 message" : `${handed.length} messages`;
  const ids = handed.map(({ claim }) => claim.id).join(", ");
  throw new TypeError(
    `The handler of queue "${subscription.queue.name}" returned ${outcomes} for ${messages} ` +
      `(${ids}); return one for all, or one for each in order`,
  );
}

function decide(work: Work, context: DeliveriesContext, decision: () => Decision): void {
  const { queue } = context.subscription;
  try {
    work.decision = decision();
  } catch (thrown) {
    const error = asError(thrown, `The handler of queue "${queue.name}"`);
    fail(error, work, context, "error");
  }
}

/** A message that could not even be given up is delivered again. */
function fail(
  error: Error,
  work: Work,
  context: DeliveriesContext,
  what: "error" | "decode",
): void {
  try {
    work.decision = afterFailure(error, work, context, what);
  } catch (thrown) {
    const reason = asError(thrown, "To give the message up");
    work.decision = again(reason, work, context);
  }
}

function afterReturn(returned: unknown, work: Work, context: DeliveriesContext): Decision {
  const { subscription } = context;
  const delivery = work.delivery!;
  const { settledAs, signal } = delivery;
  if (settledAs !== undefined) {
    if (returned === undefined) return { outcome: settledAs, settlement: undefined };
    throw new AlreadySettledError(
      `The handler of queue "${delivery.queue}" settled message ${delivery.id} as ` +
        `${settledAs.kind} and then returned ${nameOf(returned)}; return nothing after ` +
        `delivery.settle()`,
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
    `The handler of queue "${delivery.queue}" returned ${describeValue(returned)} for message ` +
      `${delivery.id}; return ack(), retry(), retryAfter(…), drop(), deadLetter() or nothing`,
  );
}

function nameOf(returned: unknown): string {
  return isOutcome(returned) ? returned.kind : describeValue(returned);
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
      return { outcome: retry(), settlement: { kind: "release" }, error, isFatal: true };
    case "retry": {
      // Nobody could tell what was lost if a message that nobody can read were dropped.
      const mayGiveUp = what === "error" || canBury(subscription);
      if (isSpent(subscription, claim.attempt) && mayGiveUp) {
        return { ...giveUp(subscription, claim.attempt, message), error };
      }
      return again(error, { claim }, { subscription });
    }
  }
}

/** The message is delivered again after a growing delay. */
function again(
  error: Error,
  { claim }: Pick<Work, "claim">,
  { subscription: { options } }: Pick<DeliveriesContext, "subscription">,
): Decision {
  const delay = backoff(claim.attempt ?? 1, options.backoff);
  const settlement = { kind: "delay", delay, error: errorText(error.message) ?? "" } as const;
  return { outcome: retry(), settlement, error };
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
