import type { Broker } from "./broker.ts";
import { ByHand } from "./by_hand.ts";
import { checkConnections } from "./check/check_connections.ts";
import { checkTables, type TableUse } from "./check/check_tables.ts";
import { createTables } from "./check/create_tables.ts";
import { thisScope } from "./clock.ts";
import { clockOf, presentOf } from "./clock_of.ts";
import type { States } from "./delivery_in_work.ts";
import { deadLetterProblems, deadLetterUse, isOwnTable } from "./dead_letter.ts";
import type { Dialect, NextDue, NextDueStatement, QueueUse, TableFacts } from "./driver/dialect.ts";
import type { Driver } from "./driver/driver.ts";
import { ClosedError, DeclarationError, SchemaError } from "./errors.ts";
import type { AnyInbox } from "./inbox.ts";
import type { ClaimForm } from "./claim/claim_form.ts";
import { AdvisoryLockForm } from "./claim/advisory_lock.ts";
import { LeaseForm } from "./claim/lease.ts";
import { RowLockForm } from "./claim/row_lock.ts";
import type { OpenTransaction } from "./held_transaction.ts";
import { logOf } from "./log.ts";
import { NotifyChannel } from "./notify_channel.ts";
import { Pool } from "./pool.ts";
import type { PublishManyOptions, PublishOptions } from "./publish_options.ts";
import { type Published, Publisher } from "./publisher.ts";
import type { AnyQueue } from "./queue.ts";
import type { Runtime } from "./runtime.ts";
import { SubscriptionLoop } from "./subscription_loop.ts";
import type { AnySubscription } from "./subscription.ts";
import { WakeLink } from "./wake_link.ts";
import { type WakeMessage, writeWakeMessage } from "./wake_message.ts";

/** What of a broker a running one is made from. */
type Declaration =
  & Pick<
    Broker,
    "tables" | "subscriptions" | "lease" | "pollInterval" | "listenNotify" | "wake"
  >
  & { readonly driver: Driver };

/** A broker whose database is open: its tables are checked, its subscriptions ready to run. */
export class RunningBroker {
  readonly loops: readonly SubscriptionLoop[];
  readonly #declaration: Declaration;
  readonly #driver: Driver;
  /** The database's sessions. */
  readonly pool: Pool;
  readonly #publisher: Publisher;
  readonly #runtime: Runtime;
  readonly #facts: ReadonlyMap<AnyInbox, TableFacts>;
  readonly #link: WakeLink | undefined;

  /** Opens the database, creates and checks its tables. What it had opened is closed if it fails. */
  static async open(
    broker: Declaration,
    states: States,
    runtime: Runtime,
  ): Promise<RunningBroker> {
    if (runningBrokers.has(broker)) {
      throw new ClosedError("Cannot open this broker again: it is open; close it, or stop its app");
    }
    const driver = runtime.driver(broker.driver);
    checkConnections(driver, broker.subscriptions);
    const pool = new Pool(driver);
    await pool.open();
    try {
      if (broker.subscriptions.some(holdsByAdvisoryLock)) await pool.enableLocks();
      await createTables(driver, pool, broker.tables);
      const facts = await checkTables(driver, pool, usesOf(broker));
      const problems = broker.subscriptions.flatMap(({ queue, options: { deadLetter } }) =>
        deadLetterProblems(queue as AnyQueue, deadLetter, facts)
      );
      if (problems.length > 0) throw new SchemaError(problems);
      const running = new RunningBroker(broker, driver, pool, facts, states, runtime);
      runningBrokers.set(broker, running);
      await running.#openLink();
      return running;
    } catch (error) {
      await pool.close();
      throw error;
    }
  }

  private constructor(
    broker: Declaration,
    driver: Driver,
    pool: Pool,
    facts: ReadonlyMap<AnyInbox, TableFacts>,
    states: States,
    runtime: Runtime,
  ) {
    this.#declaration = broker;
    this.#driver = driver;
    this.#runtime = runtime;
    this.pool = pool;
    this.#facts = facts;
    this.#link = this.#makeLink();
    this.#publisher = new Publisher({
      driver,
      pool,
      runtime,
      wake: (queue) => this.#wakeEverywhere(queue),
      notifyIn: broker.listenNotify ? (tx, queue) => this.#notifyIn(tx, queue) : undefined,
    });
    for (const [inbox, found] of facts) this.#publisher.know(inbox, found);
    this.loops = broker.subscriptions.map((subscription) =>
      new SubscriptionLoop({
        subscription,
        form: this.#formOf(subscription, facts.get(subscription.queue.inbox)!, runtime),
        pollInterval: subscription.options.pollInterval ?? broker.pollInterval,
        nextDue: this.#nextDueOf(subscription, facts.get(subscription.queue.inbox)!, runtime),
        states,
        runtime,
        publisher: this.#publisher,
        database: driver.name,
      })
    );
  }

  /** Whether the queue's table is one that this broker creates or subscribes to. */
  serves(queue: AnyQueue): boolean {
    return usesOf(this.#declaration).some(({ inbox }) => this.#isSameTable(inbox.table, queue));
  }

  /** The database's name. */
  get database(): string {
    return this.#driver.name;
  }

  /** How statements are written. */
  get dialect(): Dialect {
    return this.#driver.dialect;
  }

  /** The transaction that a caller of `transaction` was given. */
  openTransaction(tx: unknown): OpenTransaction {
    return this.#publisher.openTransaction(tx);
  }

  /** Publishes one message. */
  publish(queue: AnyQueue, message: unknown, options?: PublishOptions): Promise<Published> {
    return this.#runtime.enter(() => this.#publisher.publish(queue, message, options));
  }

  /** Publishes many messages, all or none. */
  publishMany(
    queue: AnyQueue,
    messages: Iterable<unknown>,
    options?: PublishManyOptions,
  ): Promise<readonly Published[]> {
    return this.#runtime.enter(() => this.#publisher.publishMany(queue, messages, options));
  }

  /** Runs work in a transaction; the work itself is the caller's. */
  transaction<T>(work: (tx: unknown) => Promise<T>): Promise<T> {
    const inScope = thisScope();
    return this.#runtime.enter(() => this.#publisher.transaction((tx) => inScope(() => work(tx))));
  }

  /** Runs what is asked of the broker by code that may be no part of its app, as part of the app. */
  enter<T>(work: () => Promise<T>): Promise<T> {
    return this.#runtime.enter(work);
  }

  /** Forgets that it is open, and closes nothing. */
  forget(): void {
    runningBrokers.delete(this.#declaration);
  }

  /** Leaves its database as the end of the process does; only what listens is closed. */
  async kill(): Promise<void> {
    this.forget();
    await this.#link?.close();
  }

  /** Closes the database. No loop may be running. */
  async close(): Promise<void> {
    this.forget();
    try {
      for (const loop of this.loops) await loop.close();
      await this.#link?.close();
    } finally {
      await this.pool.close();
    }
  }

  #nextDueOf(
    { queue }: AnySubscription,
    facts: TableFacts,
    runtime: Runtime,
  ): () => Promise<NextDue | undefined> {
    const { description, statements: { claim } } = queue.inbox;
    if (claim !== undefined) return () => Promise.resolve(undefined);
    const use = { clock: clockOf(queue.inbox, runtime), group: groupOf(queue) };
    const now = presentOf(queue.inbox);
    // Only a test harness asks: production need not write the statement.
    let written: NextDueStatement | undefined;
    return async () => {
      const { statement, read } = written ??= this.dialect.nextDue(description, facts, use);
      return read((await this.pool.query(statement, { now: now() }))[0]!);
    };
  }

  #formOf(subscription: AnySubscription, facts: TableFacts, runtime: Runtime): ClaimForm {
    const { queue, options } = subscription;
    const { description } = queue.inbox;
    const { lease } = this.#declaration;
    const { name, dialect } = this.#driver;
    const use: QueueUse = {
      clock: clockOf(queue.inbox, runtime),
      group: groupOf(queue),
      deadLetter: deadLetterUse(queue as AnyQueue, options.deadLetter, this.#facts),
    };
    const common = { queue: queue.name, pool: this.pool, now: presentOf(queue.inbox) };
    const byHand = new ByHand(queue.inbox.statements, dialect, description, facts, use.group);
    switch (description.form) {
      case "lease": {
        const countsAttempts = description.attempt !== undefined;
        return new LeaseForm({
          ...common,
          statements: byHand.lease(dialect.lease(description, facts, use)),
          leaseSeconds: (options.lease ?? lease) / 1000,
          countsAttempts,
          keepsDelays: countsAttempts || description.retryAfter !== undefined,
          runtime,
        });
      }
      case "advisory lock":
        return new AdvisoryLockForm({
          ...common,
          statements: byHand.advisoryLock(dialect.advisoryLock(description, facts, use)),
          endConnection: dialect.endConnection,
        });
      case "row lock":
        if (dialect.rowLock === undefined) break;
        if (options.maxAttempts !== undefined) warnOfCrashes(queue.name);
        return new RowLockForm({
          ...common,
          statements: byHand.rowLock(dialect.rowLock(description, facts, use)),
        });
    }
    throw new DeclarationError(
      `Cannot hold rows of "${description.table}" by ${description.form}: ${name} does not; ` +
        `give it the role lockedUntil`,
    );
  }

  #makeLink(): WakeLink | undefined {
    const { listenNotify, wake } = this.#declaration;
    const channel = listenNotify ? new NotifyChannel(() => this.pool, NOTIFY_CHANNEL) : wake;
    return channel && new WakeLink(channel, {
      wake: (message) => this.#wake(message),
      wakeAll: () => this.loops.forEach((loop) => loop.wake()),
    });
  }

  async #openLink(): Promise<void> {
    try {
      await this.#link?.open();
    } catch (error) {
      this.forget();
      await this.#link?.close();
      throw error;
    }
  }

  #wakeEverywhere(queue: AnyQueue): void {
    const message = this.#wakeOf(queue);
    this.#wake(message);
    this.#link?.tell(message);
  }

  async #notifyIn(transaction: OpenTransaction, queue: AnyQueue): Promise<void> {
    const payload = writeWakeMessage(this.#wakeOf(queue));
    await transaction.run(this.dialect.notify!, { channel: NOTIFY_CHANNEL, payload });
  }

  #wakeOf(queue: AnyQueue): WakeMessage {
    const group = groupOf(queue);
    const table = this.dialect.tableKey(queue.inbox.table);
    return group === undefined ? { table } : { table, group };
  }

  /** Where a table has groups, only those who take the queue's own rows. */
  #wake({ table, group }: WakeMessage): void {
    const { tableKey } = this.dialect;
    for (const loop of this.loops) {
      const isOfGroup = group === undefined || group === groupOf(loop.queue);
      if (isOfGroup && tableKey(loop.queue.inbox.table) === table) loop.wake();
    }
  }

  #isSameTable(table: string, { inbox }: AnyQueue): boolean {
    const { tableKey } = this.#driver.dialect;
    return tableKey(table) === tableKey(inbox.table);
  }
}

/** Under this name brokers with `listenNotify` listen. */
const NOTIFY_CHANNEL = "holdfast_wake";

/** The running side of each broker that is open. */
export const runningBrokers: WeakMap<Declaration, RunningBroker> = new WeakMap();

/** A claim writes nothing, so a process that dies has spent no attempt. */
function warnOfCrashes(queue: string): void {
  LOG.warn(
    "Queue {queue} limits attempts but holds rows by row locks, which cannot count a handler that " +
      "kills its process: such a message comes back for ever; give its table the role lockedUntil",
    { queue },
  );
}

function holdsByAdvisoryLock({ queue }: AnySubscription): boolean {
  return queue.inbox.form === "advisory lock";
}

/** The group whose rows the queue is, where its table has groups. */
function groupOf({ name, inbox }: AnyQueue): string | undefined {
  return inbox.description.group === undefined ? undefined : name;
}

function usesOf({ subscriptions, tables }: Declaration): readonly TableUse[] {
  const uses = new Map<AnyInbox, TableUse>();
  for (const { queue: { inbox, name } } of subscriptions) {
    if (!uses.has(inbox)) uses.set(inbox, { inbox, subscription: name });
  }
  for (const { queue, options: { deadLetter } } of subscriptions) {
    if (deadLetter === undefined || isOwnTable(deadLetter, queue as AnyQueue)) continue;
    const { inbox } = deadLetter;
    if (!uses.has(inbox)) uses.set(inbox, { inbox, subscription: queue.name });
  }
  for (const inbox of tables) {
    if (!uses.has(inbox)) uses.set(inbox, { inbox, subscription: undefined });
  }
  return [...uses.values()];
}

const LOG = logOf("check");
