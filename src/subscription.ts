import type { Delivery } from "./delivery.ts";
import type { TableDescription } from "./driver/dialect.ts";
import type { Form } from "./driver/form.ts";
import { type Duration, toMilliseconds } from "./duration.ts";
import { DeclarationError } from "./errors.ts";
import type { Outcome } from "./outcome.ts";
import { refuseUnknownOptions } from "./refuse_unknown_options.ts";
import type { Queue } from "./queue.ts";

/**
 * Handles one message. What it returns is carried out; nothing acks, unless the signal has aborted; an
 * error thrown is a failure, and the message is delivered again, in the lease form after a growing
 * delay.
 */
export type Handler<Out, Attempt extends number | undefined = number | undefined> = (
  message: Out,
  delivery: Delivery<Attempt>,
) => Outcome | void | Promise<Outcome | void>;

/** How a subscription runs. An option that the form does not have carries the reason as its type. */
export interface SubscribeOptions<F extends Form = Form, Table extends string = string> {
  /** How many messages are handled side by side. A whole number of at least 1; default 1. */
  readonly workers?: number;
  /**
   * How long a claim holds its row unless it is renewed, which happens every half of it. Rounded up
   * to whole seconds; default 30 s.
   */
  readonly lease?: F extends "lease" ? Duration
    : `"${Table}" holds rows by ${F}, which has no lease: give it the role lockedUntil`;
  /** How often an idle subscription looks for messages that no wake told it of; default 1 s. */
  readonly pollInterval?: Duration;
  /**
   * Where `deadLetter()` moves a message: the name of another group of the same table, which needs
   * the role `group`. A queue of that name reads them.
   */
  readonly deadLetter?: string;
}

/** A handler of a queue, declared by `queue.subscribe`. */
export interface Subscription<
  out Out,
  out F extends Form = Form,
  out Attempt extends number | undefined = number | undefined,
  out Table extends string = string,
> {
  /** The queue. */
  readonly queue: Queue<never, Out, F, Attempt, Table>;
  /** The options as given, checked. */
  readonly options: CheckedOptions;
  /** Calls the handler. */
  handle(message: Out, delivery: Delivery<Attempt>): Outcome | void | Promise<Outcome | void>;
}

/** Any subscription at all. */
export type AnySubscription = Subscription<unknown>;

/** A subscription's options in milliseconds; `undefined` where the broker's default holds. */
export interface CheckedOptions {
  /** How many messages are handled side by side. */
  readonly workers: number;
  /** The lease in milliseconds. */
  readonly lease: number | undefined;
  /** The poll interval in milliseconds. */
  readonly pollInterval: number | undefined;
  /** The group that messages are moved to when they are given up. */
  readonly deadLetter: string | undefined;
}

/** Makes the subscription of a queue. */
export function declareSubscription<
  In,
  Out,
  F extends Form,
  Attempt extends number | undefined,
  Table extends string,
>(
  queue: Queue<In, Out, F, Attempt, Table>,
  options: SubscribeOptions<F, Table>,
  handler: Handler<Out, Attempt> | undefined,
): Subscription<Out, F, Attempt, Table> {
  if (typeof handler !== "function") {
    throw new TypeError(
      `Cannot subscribe to queue "${queue.name}" with ${typeof handler} as handler: give a function`,
    );
  }
  return { queue, options: checkOptions(queue, options), handle: handler };
}

/** What the checks need to know of a queue. */
interface QueueToCheck {
  readonly name: string;
  readonly inbox: {
    readonly table: string;
    readonly form: Form;
    readonly description: TableDescription;
  };
}

function checkOptions(
  queue: QueueToCheck,
  options: SubscribeOptions<Form, string>,
): CheckedOptions {
  const place = `queue "${queue.name}"`;
  if (typeof options !== "object" || options === null) {
    throw new TypeError(
      `Cannot subscribe to ${place} with ${String(options)} as options: give an object or none`,
    );
  }
  refuseUnknownOptions(`Cannot subscribe to ${place}`, options, OPTIONS);
  if (options.lease !== undefined && queue.inbox.form !== "lease") {
    throw new DeclarationError(
      `Cannot give ${place} a lease: "${queue.inbox.table}" holds rows by ${queue.inbox.form}; ` +
        `give it the role lockedUntil`,
    );
  }
  return {
    workers: checkWorkers(options.workers ?? 1, queue),
    lease: checkLease(options.lease as Duration | undefined, place),
    pollInterval: checkPollInterval(options.pollInterval, place),
    deadLetter: checkDeadLetter(options.deadLetter, queue),
  };
}

function checkWorkers(workers: number, { name, inbox }: QueueToCheck): number {
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

function checkDeadLetter(
  group: string | undefined,
  { name, inbox }: QueueToCheck,
): string | undefined {
  if (group === undefined) return undefined;
  const cannot = `Cannot dead-letter messages of queue "${name}" to ${JSON.stringify(group)}`;
  if (typeof group !== "string" || group === "") {
    throw new TypeError(`${cannot}: give the name of a group`);
  }
  if (inbox.description.group === undefined) {
    throw new DeclarationError(
      `${cannot}: "${inbox.table}" has no groups; give it the role group`,
    );
  }
  if (group === name) {
    throw new DeclarationError(`${cannot}: they would be delivered again; give another group`);
  }
  return group;
}

/** The lease in milliseconds, whole seconds; `undefined` if none is given. */
export function checkLease(lease: Duration | undefined, place: string): number | undefined {
  if (lease === undefined) return undefined;
  const length = toMilliseconds(lease, `the lease of ${place}`);
  if (length > 0 && length <= LONGEST_LEASE) return Math.ceil(length / 1000) * 1000;
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

const OPTIONS: readonly string[] = ["workers", "lease", "pollInterval", "deadLetter"];
const LONGEST_LEASE = 365 * 86_400_000;
