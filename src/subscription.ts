import type { Delivery } from "./delivery.ts";
import type { DeadLetterTarget } from "./dead_letter.ts";
import type { BackoffCurve } from "./backoff.ts";
import type { Form } from "./driver/form.ts";
import type { Duration } from "./duration.ts";
import type { Outcome } from "./outcome.ts";
import type { AnyQueue, Queue } from "./queue.ts";
import { checkOptions } from "./subscribe_options.ts";

/** What a handler gives back: what is to become of its message; nothing acks. */
export type Returned = Outcome | void | Promise<Outcome | void>;

/**
 * Handles one message. What it returns is carried out; nothing acks, unless the signal has aborted; an
 * error thrown is a failure, and the message is delivered again after a growing delay, until its
 * attempts are spent.
 */
export type Handler<
  Out,
  Attempt extends number | undefined = number | undefined,
  Transactional extends boolean = boolean,
> = (message: Out, delivery: Delivery<Attempt, Transactional>) => Returned;

/** What a batch handler gives back: one outcome for all of its messages, or one for each in order. */
export type BatchReturned =
  | Outcome
  | void
  | readonly (Outcome | undefined)[]
  | Promise<Outcome | void | readonly (Outcome | undefined)[]>;

/**
 * Handles several messages together. It returns one outcome for all of them or one for each, in order;
 * nothing acks. An error thrown is a failure of all, which are then delivered again one by one, so
 * that one of them does not keep the others from being handled.
 */
export type BatchHandler<Out, Attempt extends number | undefined = number | undefined> = (
  messages: readonly Out[],
  deliveries: readonly Delivery<Attempt, false>[],
) => BatchReturned;

/** The handler that goes with options. */
export type HandlerOf<Out, Attempt extends number | undefined, O> = O extends
  { readonly batch: number } ? BatchHandler<Out, Attempt>
  : O extends { readonly transactional: true } ? Handler<Out, Attempt, true>
  : Handler<Out, Attempt, false>;

/** What becomes of a message that failed. */
export type FailureAction =
  /** Delivered again after the backoff, until its attempts are spent. */
  | "retry"
  /** Given up: deleted or marked. */
  | "drop"
  /** Moved to the dead letter. */
  | "dead-letter"
  /** Left as it is, and the app stops: `app.run()` rejects. */
  | "fail-fast";

/** What becomes of messages that failed, by what failed; `"retry"` unless given. */
export interface OnFailure {
  /** The handler threw. */
  readonly error?: FailureAction;
  /** The payload or the headers cannot be decoded, or the schema refuses them. */
  readonly decode?: FailureAction;
}

/** How the delay after a failure grows: drawn at random from zero to a length that doubles. */
export interface Backoff {
  /** The longest delay after the first attempt; default 1 s. */
  readonly first?: Duration;
  /** The longest delay at all; default 1 h. */
  readonly cap?: Duration;
}

/** How a subscription runs. An option that the form does not have carries the reason as its type. */
export interface SubscribeOptions<
  F extends Form = Form,
  Table extends string = string,
  Attempt extends number | undefined = number | undefined,
> {
  /** How many messages, or batches, are handled side by side. A whole number of at least 1; default 1. */
  readonly workers?: number;
  /**
   * How many messages are handed to the handler at once, at the most: then it gets a list of messages
   * and a list of deliveries. A whole number of at least 1.
   */
  readonly batch?: number;
  /**
   * Gives the handler a transaction: what it writes in it is committed together with the end of its
   * message by `ack()`, and rolled back with every other outcome, by an error, and when its signal
   * aborts. It is reached by `postgresTx(delivery)`, `mysqlTx(delivery)` or `sqliteTx(delivery)`.
   */
  readonly transactional?: boolean;
  /**
   * How long a claim holds its row unless it is renewed, which happens every half of it. Rounded up
   * to whole seconds; default 30 s.
   */
  readonly lease?: F extends "lease" ? Duration
    : `"${Table}" holds rows by ${F}, which has no lease: give it the role lockedUntil`;
  /** How often an idle subscription looks for messages that no wake told it of; default 1 s. */
  readonly pollInterval?: Duration;
  /**
   * How often a message is delivered at the most. One whose attempts are spent is dead-lettered or,
   * without `deadLetter`, dropped, which an error in the log tells; one that cannot be decoded is then
   * kept, and tried again. In the lease and the advisory lock form an attempt that kills the process
   * counts; the row lock form cannot count it.
   */
  readonly maxAttempts?: [Attempt] extends [undefined]
    ? `"${Table}" counts no attempts: give it the role attempt`
    : number;
  /**
   * Where messages go that are given up: the name of another group of the same table, which needs the
   * role `group`, or another inbox or queue of the same database, to which rows are copied by the
   * names of their columns. There they are due at once, and their attempts begin anew.
   */
  readonly deadLetter?: DeadLetterTarget;
  /** How long a message that failed waits for its next attempt: exponential, with full jitter. */
  readonly backoff?: Backoff;
  /** What becomes of messages that failed. */
  readonly onFailure?: OnFailure;
  /** How long a handler may take before its signal aborts, with a `TimeoutError`; no limit unless given. */
  readonly timeout?: Duration;
}

/** The options, or, where one does not exist, the reason in place of their type. */
export type CheckedSubscribeOptions<O> = Exclude<keyof O, keyof SubscribeOptions> extends never ? O
  : `${
    & Exclude<keyof O, keyof SubscribeOptions>
    & string} is not an option of a subscription: options are workers, batch, transactional, lease, pollInterval, maxAttempts, deadLetter, backoff, onFailure, timeout`;

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
  /** Calls the handler: with one message and its delivery or, for a batch, with lists of both. */
  handle(
    message: Out | readonly Out[],
    delivery: Delivery<Attempt> | readonly Delivery<Attempt>[],
  ): Returned | BatchReturned;
}

/** Any subscription at all. */
export type AnySubscription = Subscription<unknown>;

/** A subscription's options, times in milliseconds; `undefined` where the broker's default holds. */
export interface CheckedOptions {
  /** How many messages, or batches, are handled side by side. */
  readonly workers: number;
  /** How many messages a batch has at the most; `undefined` where each is handled by itself. */
  readonly batch: number | undefined;
  /** Whether handlers have a transaction. */
  readonly transactional: boolean;
  /** The lease. */
  readonly lease: number | undefined;
  /** The poll interval. */
  readonly pollInterval: number | undefined;
  /** How often a message is delivered at the most. */
  readonly maxAttempts: number | undefined;
  /** Where messages go that are given up. */
  readonly deadLetter: AnyQueue | undefined;
  /** How delays after failures grow. */
  readonly backoff: BackoffCurve;
  /** What becomes of messages that failed. */
  readonly onFailure: Required<OnFailure>;
  /** How long a handler may take. */
  readonly timeout: number | undefined;
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
  options: SubscribeOptions<F, Table, Attempt>,
  handler: unknown,
): Subscription<Out, F, Attempt, Table> {
  if (typeof handler !== "function") {
    throw new TypeError(
      `Cannot subscribe to queue "${queue.name}" with ${typeof handler} as handler: give a function`,
    );
  }
  const checked = checkOptions(queue as AnyQueue, options as SubscribeOptions);
  return {
    queue,
    options: checked,
    handle: handler as Subscription<Out, F, Attempt, Table>["handle"],
  };
}
