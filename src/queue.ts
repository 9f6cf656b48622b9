import type { Form } from "./driver/form.ts";
import { DeclarationError } from "./errors.ts";
import type { Inbox } from "./inbox.ts";
import {
  type CheckedSubscribeOptions,
  declareSubscription,
  type Handler,
  type HandlerOf,
  type SubscribeOptions,
  type Subscription,
} from "./subscription.ts";

/**
 * An inbox under a name: what messages are published to and subscribed from. `Queue<Report>` can be
 * written by hand where a function takes a queue.
 *
 * @typeParam In what is published
 * @typeParam Out what a handler gets
 * @typeParam F how a claim holds a row
 * @typeParam Attempt the type of `delivery.attempt`
 * @typeParam Table the table's name
 */
export interface Queue<
  in In,
  out Out = In,
  out F extends Form = Form,
  out Attempt extends number | undefined = number | undefined,
  out Table extends string = string,
> {
  /** The queue's name. */
  readonly name: string;
  /** The described table. */
  readonly inbox: Inbox<In, Out, F, Attempt, Table>;
  /** Declares that a handler takes this queue's messages. Nothing runs before the app starts. */
  subscribe(handler: Handler<Out, Attempt, false>): Subscription<Out, F, Attempt, Table>;
  /**
   * Declares that a handler takes this queue's messages, with options.
   *
   * @throws {DeclarationError} if an option is unknown or does not go with the form
   * @throws {RangeError} if a number is out of range
   */
  subscribe<const O extends SubscribeOptions<F, Table, Attempt>>(
    options: CheckedSubscribeOptions<O>,
    handler: HandlerOf<Out, Attempt, O>,
  ): Subscription<Out, F, Attempt, Table>;
}

/** Any queue at all. */
export type AnyQueue = Queue<never, unknown>;

/** Makes the queue of an inbox. */
export function declareQueue<
  In,
  Out,
  F extends Form,
  Attempt extends number | undefined,
  Table extends string,
>(
  inbox: Inbox<In, Out, F, Attempt, Table>,
  name: string,
): Queue<In, Out, F, Attempt, Table> {
  if (typeof name === "string" && / $/.test(name)) {
    throw new DeclarationError(
      `Cannot name a queue of "${inbox.table}" ${
        JSON.stringify(name)
      }: MySQL and MariaDB do not tell ` +
        `names apart by spaces at their end; leave them out`,
    );
  }
  if (typeof name !== "string" || name === "") {
    throw new DeclarationError(
      `Cannot name a queue of "${inbox.table}" ${JSON.stringify(name)}: give a name or none`,
    );
  }
  const queue: Queue<In, Out, F, Attempt, Table> = {
    name,
    inbox,
    subscribe(first: unknown, second?: unknown): Subscription<Out, F, Attempt, Table> {
      const [options, handler] = typeof first === "function" ? [{}, first] : [first, second];
      return declareSubscription(
        queue,
        options as SubscribeOptions<F, Table, Attempt>,
        handler,
      );
    },
  };
  return queue;
}
