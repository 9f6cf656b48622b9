import type { MessageId } from "./driver/dialect.ts";
import type { Headers } from "./headers.ts";
import type { Outcome } from "./outcome.ts";
import type { PublishColumns, PublishTime } from "./publish_options.ts";
import type { Published } from "./publisher.ts";
import type { Queue } from "./queue.ts";
import type { StateKey } from "./state.ts";

/**
 * One claimed message in a handler's hands.
 *
 * @typeParam Attempt `number` where the table has the role `attempt`, else `undefined`
 * @typeParam Transactional whether the handler has a transaction
 */
export interface Delivery<
  Attempt extends number | undefined = number | undefined,
  Transactional extends boolean = boolean,
> {
  /** The row's id, exactly as the database has it: integers are `bigint`, all else is text. */
  readonly id: MessageId;
  /** The queue's name. */
  readonly queue: string;
  /** The number of this delivery, 1 for the first. */
  readonly attempt: Attempt;
  /** Whether the handler has a transaction. */
  readonly transactional: Transactional;
  /** What was published with the message: text by name. */
  readonly headers: Headers;
  /** The key that the message was published with, where the table has the role `partitionKey`. */
  readonly key: string | undefined;
  /**
   * Aborts when the handler should stop: with `LeaseLostError` when the row is no longer its own,
   * with `ShutdownError` when the app stops before it has finished, with `TimeoutError` when it has
   * taken longer than the subscription's `timeout`.
   */
  readonly signal: AbortSignal;
  /** A log whose lines name the queue, the id and the attempt. */
  readonly log: DeliveryLog;
  /**
   * What a hook has set under this key.
   *
   * @throws {DeclarationError} if nothing has been set
   */
  get<T>(key: StateKey<T>): T;
  /**
   * Carries an outcome out now, for handlers that must know that it was before they go on. What
   * the handler returns afterwards must be nothing.
   *
   * @throws {LeaseLostError} if the row is no longer this delivery's; nothing was changed
   * @throws {AlreadySettledError} if it is settled already
   */
  settle(outcome: Outcome): Promise<void>;
  /**
   * Publishes to a table of the same database: in the handler's transaction where it has one, so that
   * the message is there if, and only if, this one is acked.
   *
   * @throws {PayloadError} if the message cannot be stored, before anything is written
   * @throws {PublishError} if the database refuses it
   */
  publish<In>(
    queue: Queue<In, unknown>,
    message: NoInfer<In>,
    options?: PublishColumns & PublishTime,
  ): Promise<Published>;
}

/**
 * A log in the manner of LogTape: a message with `{placeholders}`, and their values. Lines go to
 * LogTape's category `["holdfast", "delivery"]`.
 */
export interface DeliveryLog {
  /** For developers. */
  debug(message: string, values?: Record<string, unknown>): void;
  /** For operators, when all is well. */
  info(message: string, values?: Record<string, unknown>): void;
  /** Something to look at. */
  warn(message: string, values?: Record<string, unknown>): void;
  /** Something to mend. */
  error(message: string, values?: Record<string, unknown>): void;
}
