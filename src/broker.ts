import type { Channel } from "./channel.ts";
import type { Driver, QueryAdapter } from "./driver/driver.ts";
import type { Form } from "./driver/form.ts";
import type { Duration } from "./duration.ts";
import { ClosedError, DeclarationError } from "./errors.ts";
import type { AnyInbox, Inbox } from "./inbox.ts";
import type { PublishManyOptions, PublishOptions } from "./publish_options.ts";
import type { Published } from "./publisher.ts";
import type { AnyQueue, Queue } from "./queue.ts";
import { refuseUnknownOptions } from "./refuse_unknown_options.ts";
import { RunningBroker, runningBrokers } from "./running_broker.ts";
import { PRODUCTION } from "./runtime.ts";
import { checkLease, checkPollInterval } from "./subscribe_options.ts";
import type { AnySubscription, Subscription } from "./subscription.ts";

/** Defaults for the subscriptions of a broker. */
export interface BrokerOptions {
  /** The lease of a subscription that gives none; default 30 s. */
  readonly lease?: Duration;
  /** The poll interval of a subscription that gives none; default 1 s. */
  readonly pollInterval?: Duration;
  /**
   * Whether publishing wakes the subscriptions of other processes by LISTEN and NOTIFY, on one more
   * connection; default false. Postgres only.
   */
  readonly listenNotify?: boolean;
  /** A channel over which publishing wakes the subscriptions of other processes, such as `redis(url)`. */
  readonly wake?: Channel;
}

/** An inbox, or the reason why this database cannot hold its rows in its form. */
export type CheckedInbox<I, Name extends string, Forms extends Form> = I extends
  Inbox<infer _In, infer _Out, infer F, infer _Attempt, infer Table>
  ? [F] extends [Forms] ? I : FormRefusal<F, Name, Table>
  : I;

/** A subscription, or the reason why this database cannot hold its rows in its form. */
export type CheckedSubscription<S, Name extends string, Forms extends Form> = S extends
  Subscription<infer _Out, infer F, infer _Attempt, infer Table>
  ? [F] extends [Forms] ? S : FormRefusal<F, Name, Table>
  : S;

/** Why a database cannot hold a table's rows in its form, and what to do. */
export type FormRefusal<F extends Form, Name extends string, Table extends string> =
  `${Name} has no ${F}s: give "${Table}" the role lockedUntil (lease form) or the option advisoryLock`;

/**
 * One database, the tables of it that are created, and the subscriptions that run on it. Nothing
 * connects before the app starts, or `connect` is called.
 *
 * @typeParam Name the database's name
 * @typeParam Forms the forms it can hold rows in
 * @typeParam Tx what its clients call a transaction
 */
export class Broker<Name extends string = string, Forms extends Form = Form, Tx = unknown> {
  /** The database. */
  readonly driver: Driver<Name, Forms, Tx>;
  /** The tables to be created at start where they are absent. */
  readonly tables: AnyInbox[] = [];
  /** The subscriptions to run. */
  readonly subscriptions: AnySubscription[] = [];
  /** The default lease in milliseconds. */
  readonly lease: number;
  /** The default poll interval in milliseconds. */
  readonly pollInterval: number;
  /** Whether other processes are woken by LISTEN and NOTIFY. */
  readonly listenNotify: boolean;
  /** The channel over which other processes are woken. */
  readonly wake: Channel | undefined;
  #connected: RunningBroker | undefined;

  /**
   * Declares a broker; nothing connects yet.
   *
   * @param driver the database, for example `sqlite("jobs.db")`
   * @param options defaults for the subscriptions
   */
  constructor(driver: Driver<Name, Forms, Tx>, options: BrokerOptions = {}) {
    refuseUnknownOptions("Cannot make a broker", options, OPTIONS);
    if (typeof driver?.session !== "function") {
      throw new DeclarationError(
        `Cannot make a broker over ${String(driver)}: give a driver, such as sqlite("jobs.db")`,
      );
    }
    this.driver = driver;
    this.lease = checkLease(options.lease, "the broker") ?? 30_000;
    this.pollInterval = checkPollInterval(options.pollInterval, "the broker") ?? 1_000;
    checkWake(driver, options);
    this.listenNotify = options.listenNotify ?? false;
    this.wake = options.wake;
  }

  /** Declares tables that are created at start where they are absent. */
  createTables<const I extends readonly AnyInbox[]>(
    ...inboxes: { [K in keyof I]: CheckedInbox<I[K], Name, Forms> }
  ): this {
    for (const inbox of inboxes as readonly AnyInbox[]) {
      this.#checkForm(inbox);
      if (!this.tables.includes(inbox)) this.tables.push(inbox);
    }
    return this;
  }

  /** Declares subscriptions that run while the app does. */
  include<const S extends readonly AnySubscription[]>(
    ...subscriptions: { [K in keyof S]: CheckedSubscription<S[K], Name, Forms> }
  ): this {
    for (const subscription of subscriptions as readonly AnySubscription[]) {
      this.#checkForm(subscription.queue.inbox);
      this.#checkAlone(subscription.queue);
      this.subscriptions.push(subscription);
    }
    return this;
  }

  /**
   * Connects a broker that only publishes, outside any app. Close it with `close` or `await using`.
   *
   * @throws {SchemaError} if a table that it creates is not as described
   * @throws {ClosedError} if it is connected already, or runs in an app
   */
  async connect(): Promise<this> {
    this.#connected = await RunningBroker.open(this, NO_STATES, PRODUCTION);
    return this;
  }

  /**
   * Publishes a message: it is inserted and committed when the promise resolves, and this broker's
   * subscription of its queue is woken.
   *
   * @throws {ClosedError} if neither the app has started nor `connect` was called
   * @throws {PayloadError} if the message cannot be stored, before anything is written
   * @throws {PublishError} if the database refuses it
   * @throws {DeclarationError} if an option needs a role that the table lacks
   */
  async publish<In>(
    queue: Queue<In, unknown>,
    message: NoInfer<In>,
    options?: PublishOptions<Tx>,
  ): Promise<Published> {
    return await this.#running(`publish to queue "${queue.name}"`)
      .publish(queue as AnyQueue, message, options);
  }

  /**
   * Publishes many messages: all of them, in order, or none.
   *
   * @param options for all of them; `each` gives those that differ, such as `uniqueKey`
   * @returns what became of each message, in order
   * @throws whatever `publish` throws
   */
  async publishMany<In>(
    queue: Queue<In, unknown>,
    messages: Iterable<NoInfer<In>>,
    options?: PublishManyOptions<NoInfer<In>, Tx>,
  ): Promise<readonly Published[]> {
    return await this.#running(`publish to queue "${queue.name}"`)
      .publishMany(queue as AnyQueue, messages, options as PublishManyOptions);
  }

  /**
   * Runs `work` in a transaction of the database, which is committed when `work` resolves and rolled
   * back when it rejects. Messages are published in it by `{ tx }`; their subscriptions in this
   * process are woken after the commit.
   *
   * @param work gets the transaction as the database's client knows it
   * @throws {ClosedError} if neither the app has started nor `connect` was called
   */
  async transaction<T>(work: (tx: Exclude<Tx, QueryAdapter>) => Promise<T>): Promise<T> {
    return await this.#running("open a transaction")
      .transaction((tx) => work(tx as Exclude<Tx, QueryAdapter>));
  }

  /** Closes what `connect` has opened; what an app has opened is closed when the app stops. */
  async close(): Promise<void> {
    const connected = this.#connected;
    this.#connected = undefined;
    await connected?.close();
  }

  /** Closes what `connect` has opened. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #running(what: string): RunningBroker {
    const running = runningBrokers.get(this);
    if (running !== undefined) return running;
    throw new ClosedError(
      `Cannot ${what}: its broker is not connected; ` +
        `start its app, or use "await using broker = await new Broker(driver).connect()"`,
    );
  }

  /** What the types refuse is refused for plain JavaScript as well. */
  #checkForm({ form, table }: { readonly form: Form; readonly table: string }): void {
    const { name, forms } = this.driver;
    if ((forms as readonly Form[]).includes(form)) return;
    throw new DeclarationError(
      `${name} has no ${form}s: give "${table}" the role lockedUntil (lease form) ` +
        `or the option advisoryLock`,
    );
  }

  /** Two subscriptions of one queue would take each other's rows. */
  #checkAlone(queue: AnyQueue): void {
    const { tableKey } = this.driver.dialect;
    const key = tableKey(queue.inbox.table);
    const other = this.subscriptions.map((each) => each.queue).find((each) =>
      tableKey(each.inbox.table) === key && !haveGroupsOfTheirOwn(each as AnyQueue, queue)
    );
    if (other === undefined) return;
    throw new DeclarationError(
      `Cannot include queue "${queue.name}": queue "${other.name}" of this broker takes the ` +
        `rows of "${queue.inbox.table}" already; use one subscription for a queue, with more ` +
        `workers, or tell the queues of the table apart by the role group`,
    );
  }
}

function haveGroupsOfTheirOwn(one: AnyQueue, other: AnyQueue): boolean {
  const haveGroups = [one, other].every(({ inbox }) => inbox.description.group !== undefined);
  return haveGroups && one.name !== other.name;
}

function checkWake(driver: Driver, { listenNotify, wake }: BrokerOptions): void {
  if (wake !== undefined && typeof wake?.open !== "function") {
    throw new DeclarationError(
      `Cannot make a broker with ${String(wake)} as its wake: give a channel, such as redis(url)`,
    );
  }
  if (!listenNotify) return;
  if (wake !== undefined) {
    throw new DeclarationError(
      "Cannot make a broker with both listenNotify and wake: either wakes other processes; give one",
    );
  }
  if (driver.listen !== undefined && driver.dialect.notify !== undefined) return;
  throw new DeclarationError(
    `Cannot make a broker with listenNotify over ${driver.name}: it has no notifications; give ` +
      `wake: redis(url), or leave it to polling`,
  );
}

const OPTIONS: readonly (keyof BrokerOptions)[] = ["lease", "pollInterval", "listenNotify", "wake"];

/** A broker outside any app runs no handlers. */
const NO_STATES = {
  get(): never {
    throw new DeclarationError("Cannot get a state outside of an app");
  },
};
