import { AFTER_FAILURE, type BackoffCurve } from "./backoff.ts";
import { checkDeadLetter } from "./dead_letter.ts";
import { type Duration, toMilliseconds } from "./duration.ts";
import { DeclarationError } from "./errors.ts";
import type { AnyQueue } from "./queue.ts";
import { refuseUnknownOptions } from "./refuse_unknown_options.ts";
import type {
  Backoff,
  CheckedOptions,
  FailureAction,
  OnFailure,
  SubscribeOptions,
} from "./subscription.ts";

/**
 * The options of a subscription in the form in which they are used.
 *
 * @throws {DeclarationError} if one is unknown, or does not go with the table or with another
 * @throws {TypeError} if a value is not of its type
 * @throws {RangeError} if a number is out of range
 */
export function checkOptions(queue: AnyQueue, options: SubscribeOptions): CheckedOptions {
  const place = `queue "${queue.name}"`;
  if (typeof options !== "object" || options === null) {
    throw new TypeError(
      `Cannot subscribe to ${place} with ${String(options)} as options: give an object or none`,
    );
  }
  refuseUnknownOptions(`Cannot subscribe to ${place}`, options, OPTIONS);
  checkLeaseForm(queue, options);
  const deadLetter = checkDeadLetter(options.deadLetter, queue);
  const checked: CheckedOptions = {
    workers: checkWorkers(options.workers ?? 1, queue),
    batch: checkCount(options.batch, `a batch of`, queue),
    transactional: checkSwitch(options.transactional ?? false, queue),
    lease: checkLease(options.lease as Duration | undefined, place),
    pollInterval: checkPollInterval(options.pollInterval, place),
    maxAttempts: checkMaxAttempts(options.maxAttempts as number | undefined, queue),
    deadLetter,
    backoff: checkBackoff(options.backoff, queue),
    onFailure: checkOnFailure(options.onFailure ?? {}, queue),
    timeout: checkTimeout(options.timeout, place),
  };
  checkTogether(queue, checked);
  return checked;
}

function checkLeaseForm({ name, inbox }: AnyQueue, { lease }: SubscribeOptions): void {
  if (lease === undefined || inbox.form === "lease") return;
  throw new DeclarationError(
    `Cannot give queue "${name}" a lease: "${inbox.table}" holds rows by ${inbox.form}; ` +
      `give it the role lockedUntil`,
  );
}

function checkTogether({ name, inbox }: AnyQueue, options: CheckedOptions): void {
  const { batch, transactional, onFailure, deadLetter } = options;
  const cannot = `Cannot subscribe to queue "${name}"`;
  if (transactional && batch !== undefined) {
    throw new DeclarationError(
      `${cannot} by transactional batches: the outcomes of one batch may differ, and one transaction ` +
        `cannot be both committed and rolled back; take one of batch and transactional away`,
    );
  }
  if (batch !== undefined && batch > 1 && inbox.description.fifo) {
    throw new DeclarationError(
      `${cannot} by batches: it is fifo, and one of its messages is in work at a time; take batch away`,
    );
  }
  const hasPlace = deadLetter !== undefined || inbox.statements.deadLetter !== undefined;
  if (!hasPlace && Object.values(onFailure).includes("dead-letter")) {
    throw new DeclarationError(
      `${cannot} and dead-letter what fails: give the option deadLetter, the place for it`,
    );
  }
}

function checkWorkers(workers: number, queue: AnyQueue): number {
  const { name, inbox } = queue;
  if (!Number.isSafeInteger(workers) || workers < 1) {
    throw new RangeError(
      `Cannot give queue "${name}" ${String(workers)} workers: give a whole number of at least 1`,
    );
  }
  if (inbox.description.fifo && workers > 1) {
    throw new RangeError(
      `Cannot give queue "${name}" ${workers} workers: it is fifo, and one of its messages is in ` +
        `work at a time; give it 1, and each group a subscription of its own`,
    );
  }
  return workers;
}

function checkCount(
  count: number | undefined,
  what: string,
  { name }: AnyQueue,
): number | undefined {
  if (count === undefined || Number.isSafeInteger(count) && count >= 1) return count;
  throw new RangeError(
    `Cannot give queue "${name}" ${what} ${String(count)}: give a whole number of at least 1`,
  );
}

function checkSwitch(transactional: boolean, { name }: AnyQueue): boolean {
  if (typeof transactional === "boolean") return transactional;
  throw new TypeError(
    `Cannot use ${String(transactional)} as transactional of queue "${name}": give true or false`,
  );
}

function checkMaxAttempts(max: number | undefined, queue: AnyQueue): number | undefined {
  const { name, inbox } = queue;
  if (max !== undefined && inbox.description.attempt === undefined) {
    throw new DeclarationError(
      `Cannot limit the attempts of queue "${name}": "${inbox.table}" counts no attempts; ` +
        `give it the role attempt`,
    );
  }
  return checkCount(max, "a limit of attempts of", queue);
}

function checkBackoff(backoff: Backoff | undefined, { name, inbox }: AnyQueue): BackoffCurve {
  if (backoff === undefined) return AFTER_FAILURE;
  const place = `the backoff of queue "${name}"`;
  refuseUnknownOptions(`Cannot use ${place}`, backoff, ["first", "cap"]);
  const { retryAfter, lockedUntil, attempt } = inbox.description;
  if (retryAfter === undefined && (lockedUntil === undefined || attempt === undefined)) {
    throw new DeclarationError(
      `Cannot delay messages of queue "${name}" after failures: "${inbox.table}" cannot keep the ` +
        `time; give it the role retryAfter`,
    );
  }
  const first = toMilliseconds(backoff.first ?? AFTER_FAILURE.first, `first of ${place}`);
  const cap = toMilliseconds(
    backoff.cap ?? Math.max(first, AFTER_FAILURE.cap),
    `cap of ${place}`,
  );
  if (first > 0 && cap >= first && cap <= LONGEST) return { first, cap };
  throw new RangeError(
    `Cannot use first ${first} ms and cap ${cap} ms as ${place}: give more than 0, a cap that is ` +
      `not less than first, and at most 365 days`,
  );
}

function checkOnFailure(
  { error = "retry", decode = "retry", ...others }: OnFailure,
  { name }: AnyQueue,
): Required<OnFailure> {
  refuseUnknownOptions(`Cannot use onFailure of queue "${name}"`, others, ["error", "decode"]);
  for (const [what, action] of Object.entries({ error, decode })) {
    if (ACTIONS.includes(action)) continue;
    throw new TypeError(
      `Cannot use ${JSON.stringify(action)} as onFailure.${what} of queue "${name}": give ` +
        ACTIONS.map((each) => `"${each}"`).join(", "),
    );
  }
  return { error, decode };
}

function checkTimeout(timeout: Duration | undefined, place: string): number | undefined {
  if (timeout === undefined) return undefined;
  const length = toMilliseconds(timeout, `the timeout of ${place}`);
  if (length >= 1) return length;
  throw new RangeError(`Cannot use ${length} ms as the timeout of ${place}: give at least 1 ms`);
}

/** The lease in milliseconds, whole seconds; `undefined` if none is given. */
export function checkLease(lease: Duration | undefined, place: string): number | undefined {
  if (lease === undefined) return undefined;
  const length = toMilliseconds(lease, `the lease of ${place}`);
  if (length > 0 && length <= LONGEST) return Math.ceil(length / 1000) * 1000;
  throw new RangeError(
    `Cannot use ${length} ms as the lease of ${place}: give more than 0 and at most 365 days`,
  );
}

/** The poll interval in milliseconds; `undefined` if none is given. */
export function checkPollInterval(
  interval: Duration | undefined,
  place: string,
): number | undefined {
  if (interval === undefined) return undefined;
  const length = toMilliseconds(interval, `the poll interval of ${place}`);
  if (length >= 1) return length;
  throw new RangeError(
    `Cannot use ${length} ms as the poll interval of ${place}: give at least 1 ms`,
  );
}

const OPTIONS: readonly string[] = [
  "workers",
  "batch",
  "transactional",
  "lease",
  "pollInterval",
  "maxAttempts",
  "deadLetter",
  "backoff",
  "onFailure",
  "timeout",
];
const ACTIONS: readonly FailureAction[] = ["retry", "drop", "dead-letter", "fail-fast"];
const LONGEST = 365 * 86_400_000;
