import { CommitHooks } from "./after_commit.ts";
import { readFacts } from "./check/read_facts.ts";
import { ByHand } from "./by_hand.ts";
import { clockOf, presentOf } from "./clock_of.ts";
import type { MessageId, NewRow, PublishStatement, TableFacts } from "./driver/dialect.ts";
import type { Driver } from "./driver/driver.ts";
import { encodePayload } from "./encode_payload.ts";
import { HoldfastError, PublishError, SchemaError } from "./errors.ts";
import { generateId } from "./generate_id.ts";
import type { AnyInbox } from "./inbox.ts";
import { type Inserted, insertMany, insertOne } from "./insert_rows.ts";
import { insideDelivery, runInside } from "./inside_transaction.ts";
import type { OpenTransaction } from "./held_transaction.ts";
import type { Pool } from "./pool.ts";
import {
  checkPublish,
  MESSAGE_OPTIONS,
  type PublishManyOptions,
  type PublishOptions,
} from "./publish_options.ts";
import type { AnyQueue } from "./queue.ts";
import { refuseUnknownOptions } from "./refuse_unknown_options.ts";
import type { PublishRecord, Runtime } from "./runtime.ts";

/** What a publish gives back. */
export interface Published {
  /**
   * The id of the message's row: integers are `bigint`, all else is text. Where a row has the unique
   * key already, that row's id.
   */
  readonly id: MessageId;
  /** Whether a row was inserted; false if one has the unique key already. */
  readonly inserted: boolean;
}

type Runner = Pick<OpenTransaction, "run">;

/** Tells other processes, by the transaction itself, that the queue has messages once it is committed. */
export type NotifyIn = (transaction: OpenTransaction, queue: AnyQueue) => Promise<void>;

/** What a publisher works with. */
export interface PublisherOptions {
  readonly driver: Driver;
  readonly pool: Pool;
  readonly runtime: Runtime;
  /** Called for each queue that has messages, once they are committed. */
  readonly wake: (queue: AnyQueue) => void;
  readonly notifyIn: NotifyIn | undefined;
}

/** Where messages are inserted, and who is told when. */
interface Place {
  readonly transaction: OpenTransaction | undefined;
  /** Called for the queue of each message that was inserted. */
  readonly wake: (queue: AnyQueue) => void | Promise<void>;
  /** Where what is published is noted until its fate is known. */
  readonly records?: PublishRecord[];
  /** Whether the transaction is the one of a delivery. */
  readonly isOfDelivery?: boolean;
}

/** Inserts messages, and wakes whoever waits for them once they are committed. */
export class Publisher {
  readonly pool: Pool;
  readonly #driver: Driver;
  readonly #runtime: Runtime;
  readonly #wake: (queue: AnyQueue) => void;
  /** Tells other processes in a transaction whose end is not told. */
  readonly #notifyIn: NotifyIn | undefined;
  readonly #facts = new Map<AnyInbox, TableFacts>();
  /** By inbox, and by the names of the other columns that are written. */
  readonly #statements = new Map<AnyInbox, Map<string, PublishStatement>>();
  /** The transactions that `transaction` has opened, by what callers know of them. */
  readonly #open = new WeakMap<object, Place>();

  constructor({ driver, pool, runtime, wake, notifyIn }: PublisherOptions) {
    this.#driver = driver;
    this.pool = pool;
    this.#runtime = runtime;
    this.#wake = wake;
    this.#notifyIn = notifyIn;
  }

  /** A table that has been checked already need not be looked at again. */
  know(inbox: AnyInbox, facts: TableFacts): void {
    this.#facts.set(inbox, facts);
  }

  /** Whoever waits for messages of this queue looks for them now. */
  wake(queue: AnyQueue): void {
    this.#wake(queue);
  }

  /** Publishes a message. */
  publish(queue: AnyQueue, message: unknown, options: PublishOptions = {}): Promise<Published> {
    return this.#publish(queue, message, options, this.#placeOf(options.tx));
  }

  /** Publishes a message in the transaction of a delivery, which tells its fate, and wakes nobody. */
  publishIn(
    transaction: OpenTransaction,
    records: PublishRecord[],
    queue: AnyQueue,
    message: unknown,
    options: PublishOptions,
  ): Promise<Published> {
    const place: Place = { transaction, records, wake: () => {}, isOfDelivery: true };
    return this.#publish(queue, message, options, place);
  }

  /** Publishes many messages: all of them or, if one cannot be, none. */
  async publishMany(
    queue: AnyQueue,
    messages: Iterable<unknown>,
    { each, tx, ...common }: PublishManyOptions = {},
  ): Promise<readonly Published[]> {
    const place = this.#placeOf(tx);
    const rows: NewRow[] = [];
    const all = [...messages];
    for (const [index, message] of all.entries()) {
      const own = each?.(message, index) ?? {};
      refuseUnknownOptions(`Cannot publish message ${index} by each`, own, MESSAGE_OPTIONS);
      const options = { ...common, ...own } as PublishOptions;
      rows.push(await this.#rowOf(queue, message, options));
    }
    const inserted = await this.#attempt(queue, () => this.#insertAll(queue, rows, place));
    for (const [index, { id, inserted: isNew }] of inserted.entries()) {
      if (isNew) this.#observe(queue, id, all[index], place);
    }
    if (inserted.some((each) => each.inserted)) await place.wake(queue);
    return inserted;
  }

  /**
   * Runs `work` in a transaction, which is committed when it resolves and rolled back when it
   * rejects. Whoever waits for what was published in it is woken after the commit.
   */
  async transaction<T>(work: (tx: unknown) => Promise<T>): Promise<T> {
    const queues = new Set<AnyQueue>();
    const held = await this.pool.hold();
    const inside = { pool: this.pool, isOpen: true, delivery: insideDelivery() };
    const tx = held.handle as object;
    const records: PublishRecord[] = [];
    const hooks = new CommitHooks(tx);
    this.#open.set(tx, { transaction: held, records, wake: (queue) => void queues.add(queue) });
    let result: T;
    try {
      result = await runInside(inside, () => work(tx));
    } catch (error) {
      inside.isOpen = false;
      this.#open.delete(tx);
      tellFate(records, "rolled back");
      hooks.end(false);
      await held.rollback();
      throw error;
    }
    inside.isOpen = false;
    this.#open.delete(tx);
    try {
      await held.commit();
    } catch (error) {
      tellFate(records, "unknown");
      hooks.end(false);
      throw error;
    }
    tellFate(records, "committed");
    for (const queue of queues) this.#wake(queue);
    hooks.end(true);
    return result;
  }

  /** What runs statements in a transaction that a caller has got, or has opened. */
  openTransaction(tx: unknown): OpenTransaction {
    return this.#placeOf(tx).transaction ?? this.pool.join(tx);
  }

  #placeOf(tx: unknown): Place {
    if (tx === undefined) return { transaction: undefined, wake: this.#wake };
    const open = this.#open.get(Object(tx));
    if (open !== undefined) return open;
    const transaction = this.pool.join(tx);
    return { transaction, wake: (queue) => this.#notifyIn?.(transaction, queue) };
  }

  async #publish(
    queue: AnyQueue,
    message: unknown,
    options: PublishOptions,
    place: Place,
  ): Promise<Published> {
    const row = await this.#rowOf(queue, message, options);
    const published = await this.#attempt(queue, async () => {
      const runner = place.transaction ?? this.pool;
      const statement = await this.#statementOf(queue.inbox, Object.keys(row.columns), runner);
      return await insertOne(runner, statement, row);
    });
    if (!published.inserted) return published;
    this.#observe(queue, published.id, message, place);
    await place.wake(queue);
    return published;
  }

  /** The message as it is written. Nothing has been written when it cannot be. */
  async #rowOf(queue: AnyQueue, message: unknown, options: PublishOptions): Promise<NewRow> {
    const checked = checkPublish(queue, options);
    const { payload, columns } = await encodePayload(queue, message);
    return {
      ...checked,
      id: generateId(queue, "publish to"),
      payload,
      group: queue.name,
      now: presentOf(queue.inbox)(),
      columns: { ...columns, ...checked.columns },
    };
  }

  async #insertAll(
    queue: AnyQueue,
    rows: readonly NewRow[],
    { transaction }: Place,
  ): Promise<readonly Inserted[]> {
    const statementOf = (columns: readonly string[]) =>
      this.#statementOf(queue.inbox, columns, transaction ?? this.pool);
    if (transaction !== undefined) return await insertMany(transaction, statementOf, rows);
    // What is read of the table is read before a transaction is open, which might keep it waiting.
    for (const { columns } of rows) await statementOf(Object.keys(columns));
    return await this.pool.retrying(async () => {
      const own = await this.pool.hold();
      let inserted: readonly Inserted[];
      try {
        inserted = await insertMany(own, statementOf, rows);
      } catch (error) {
        await own.rollback();
        throw error;
      }
      await own.commit();
      return inserted;
    });
  }

  async #attempt<T>({ name, inbox }: AnyQueue, insert: () => Promise<T>): Promise<T> {
    try {
      return await insert();
    } catch (cause) {
      const isOurs = cause instanceof HoldfastError &&
        ["schema", "declaration"].includes(cause.code);
      if (isOurs || cause instanceof TypeError) throw cause;
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new PublishError(
        `Cannot publish to queue "${name}" (table "${inbox.table}"): ${reason}`,
        { cause },
      );
    }
  }

  #observe(
    queue: AnyQueue,
    id: MessageId,
    message: unknown,
    { transaction, records, isOfDelivery }: Place,
  ): void {
    const fate = transaction === undefined ? "committed" : records ? "open" : "unknown";
    const isAtWork = insideDelivery()?.isAtWork ?? false;
    const isOutside = isAtWork && !isOfDelivery && fate !== "unknown";
    const publish: PublishRecord = { queue: queue.name, id, message, fate, isOutside };
    records?.push(publish);
    this.#runtime.observe({ type: "published", publish });
  }

  /** What has to be asked about the table is asked by the runner: others might wait for it. */
  async #statementOf(
    inbox: AnyInbox,
    columns: readonly string[],
    runner: Runner,
  ): Promise<PublishStatement> {
    const statements = this.#statements.get(inbox) ?? new Map<string, PublishStatement>();
    this.#statements.set(inbox, statements);
    const key = JSON.stringify(columns);
    const known = statements.get(key);
    if (known !== undefined) return known;
    const facts = await this.#factsOf(inbox, columns, runner);
    const use = { clock: clockOf(inbox, this.#runtime), columns };
    const { dialect } = this.#driver;
    const { description, statements: own } = inbox;
    const statement = new ByHand(own, dialect, description, facts, undefined)
      .publish(dialect.publish(description, facts, use));
    statements.set(key, statement);
    return statement;
  }

  /** A column may have been added since the table was looked at. */
  async #factsOf(
    inbox: AnyInbox,
    columns: readonly string[],
    runner: Runner,
  ): Promise<TableFacts> {
    const known = this.#facts.get(inbox);
    if (known !== undefined && columns.every((name) => known.columns.has(name))) return known;
    const facts = await this.#readFacts(inbox, runner);
    this.know(inbox, facts);
    return facts;
  }

  async #readFacts(inbox: AnyInbox, runner: Runner): Promise<TableFacts> {
    const facts = await readFacts(this.#driver, runner, inbox);
    if (facts.problems.length > 0) throw new SchemaError(facts.problems);
    return facts;
  }
}

/** What has become of the transaction in which these were published. */
export function tellFate(records: PublishRecord[], fate: PublishRecord["fate"]): void {
  for (const record of records.splice(0)) record.fate = fate;
}
