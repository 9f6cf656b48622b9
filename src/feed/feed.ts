import { afterCommit } from "../after_commit.ts";
import type { Component } from "../component.ts";
import type { DatabaseName } from "../ddl_text.ts";
import type { FeedTables, ScopeKey } from "../driver/dialect.ts";
import { ClosedError, TimeoutError } from "../errors.ts";
import { refuseUnknownOptions } from "../refuse_unknown_options.ts";
import { type RunningBroker, runningBrokers } from "../running_broker.ts";
import { checkName } from "./check_name.ts";
import { checkScope } from "./check_scope.ts";
import { encodeWrite } from "./encode_write.ts";
import type { EntityState, Snapshot } from "./entity_state.ts";
import type { EventSource } from "./event_source.ts";
import { explainFeed, type FeedPlan } from "./explain_feed.ts";
import { type FeedCodecs, feedCodecs } from "./feed_codecs.ts";
import { feedDdl } from "./feed_ddl.ts";
import type { FeedEvent } from "./feed_event.ts";
import { type FeedMessage, feedTopic, readFeedMessage } from "./feed_message.ts";
import { type CheckedFeedOptions, checkFeedOptions, type FeedOptions } from "./feed_options.ts";
import { FeedCounts, type FeedStats } from "./feed_stats.ts";
import { feedTables } from "./feed_tables.ts";
import type { FeedWrite, FeedWritten } from "./feed_write.ts";
import { checkFollow, type FollowOptions, type FollowPlace } from "./follow_options.ts";
import { Follower } from "./follower.ts";
import { following } from "./following.ts";
import { Ongoing } from "./ongoing.ts";
import { OpenFeed } from "./open_feed.ts";
import { checkRun, type FeedRun, runFeed, type RunOptions } from "./run_feed.ts";
import { runStepsIn } from "./run_steps_in.ts";
import { checkWaitFor, waitForEvent, type WaitForOptions } from "./wait_for_event.ts";
import { WatermarkError } from "./watermark_error.ts";
import { type EncodedWrite, writeSteps } from "./write_steps.ts";

/**
 * Writes what happens, and the state that follows from it, in one transaction, and lets others follow it:
 * every event exactly once, in order, told after it is committed, and found by polls where it is not.
 *
 * Events are numbered in their scope by `seq`, from 1, without gaps, in the order in which they are
 * committed: so writers of one scope commit one after the other. A scope belongs to the tenant that has
 * written to it first. It is a component, `app.withComponent(feed)`, so that its followers end when the
 * app stops.
 *
 * @typeParam Event what happens; it must have a JSON form
 * @typeParam State what an entity is like; it must have a JSON form
 */
export class Feed<Event, State = unknown> implements Component {
  /** What it is called; its tables are named after it. */
  readonly name: string;
  /** The names of its tables. */
  readonly tables: FeedTables;
  readonly #options: FeedOptions<Event, State>;
  readonly #checked: CheckedFeedOptions;
  readonly #codecs: FeedCodecs<Event, State>;
  readonly #counts = new FeedCounts();
  readonly #ongoing = new Ongoing();
  #opened: OpenFeed<Event, State> | undefined;

  /**
   * Declares a feed; nothing connects yet.
   *
   * @param name letters, digits and `_`
   * @throws {DeclarationError} if it cannot work
   */
  constructor(name: string, options: FeedOptions<Event, State>) {
    this.#checked = checkFeedOptions(name, options as FeedOptions<never, never>);
    this.name = name;
    this.tables = feedTables(name, options.tables);
    this.#options = options;
    this.#codecs = feedCodecs(options);
  }

  /** The statements that create its tables, as text for a migration. */
  ddl(database: DatabaseName): string {
    return feedDdl(database, this.tables);
  }

  /** Makes sure that its tables are there. Called by the app. */
  async start(): Promise<void> {
    await this.#open(`start feed "${this.name}"`).ready();
  }

  /** Ends all that follow it, or wait for an event. Called by the app. */
  async stop(): Promise<void> {
    await this.#ongoing.stop();
  }

  /**
   * Writes an event, and its entity's state if one is given, and tells followers when that is
   * committed.
   *
   * @param options `tx`: the transaction in which it is written, such as `broker.transaction` gives. In one
   * that was opened elsewhere nobody is told, and followers find the event by polling
   * @throws {VersionConflictError} if the entity has another version than expected; nothing is written
   * @throws {TenantError} without a tenant, or if the scope belongs to another one
   * @throws {PayloadError} if the event or the state has no JSON form, or its schema refuses it
   */
  async write(
    write: FeedWrite<Event, State>,
    options: { readonly tx?: unknown } = {},
  ): Promise<FeedWritten> {
    const [written] = await this.writeMany([write], options);
    return written!;
  }

  /**
   * Writes several events: all, or none. Their scopes are locked in the order of their names, so that no
   * two writers wait for each other; events of one scope keep their order.
   *
   * @returns what became of each, in the order in which they were given
   * @throws whatever `write` throws
   */
  async writeMany(
    writes: readonly FeedWrite<Event, State>[],
    { tx, ...others }: { readonly tx?: unknown } = {},
  ): Promise<readonly FeedWritten[]> {
    refuseUnknownOptions(`Cannot write to feed "${this.name}"`, others, ["tx"]);
    const broker = this.#broker(`write to feed "${this.name}"`);
    return await broker.enter(async () => {
      const encoded: EncodedWrite[] = [];
      for (const write of writes) encoded.push(await encodeWrite(this.name, write, this.#codecs));
      const sorted = encoded.toSorted((one, two) => compare(one.scope, two.scope));
      const written = await this.#writeSorted(sorted, tx);
      return encoded.map((write) => written.get(write)!);
    });
  }

  /**
   * Every event of a scope after a watermark, once, in order, as they come; it ends when the app stops, or
   * by `break`. A database that cannot be reached is waited for.
   *
   * @throws {WatermarkError} if the watermark is none, or ahead of the scope
   * @throws {TenantError} without a tenant, or if the scope belongs to another one
   */
  follow(options: FollowOptions): AsyncIterableIterator<FeedEvent<Event>> {
    const place = checkFollow(`Cannot follow feed "${this.name}"`, options);
    return this.#follow(place, this.#broker(`follow feed "${this.name}"`));
  }

  /**
   * The events of a scope after a watermark, as many as one poll gives.
   *
   * @throws {WatermarkError} if the watermark is none, or ahead of the scope
   * @throws {TenantError} without a tenant, or if the scope belongs to another one
   */
  async pollOnce(options: FollowOptions): Promise<readonly FeedEvent<Event>[]> {
    const what = `Cannot poll feed "${this.name}"`;
    const { key, from } = checkFollow(what, options);
    return await this.#reading(`poll feed "${this.name}"`, async (open) => {
      const events = await open.poll(key, from, this.#checked.pollLimit);
      this.#counts.polls++;
      // Events that were found are this tenant's, and after the watermark.
      const head = events.length > 0 ? undefined : await open.head(key);
      if (head !== undefined && from > head) {
        throw new WatermarkError(
          `${what} from ${from}: the last event of scope "${key.scope}" is ${head}; nothing was read`,
        );
      }
      return await Promise.all(events.map((each) => open.decode(key, each, "poll")));
    });
  }

  /**
   * Calls a handler for every event of a scope after a watermark, one after the other, for a while.
   *
   * @throws what the handler throws, and whatever `follow` throws
   */
  async run(
    options: RunOptions,
    handler: (event: FeedEvent<Event>) => unknown,
  ): Promise<FeedRun> {
    const { key, from, timeout } = checkRun(`Cannot run feed "${this.name}"`, options);
    const { stopOnNotify = false, signal } = options;
    const broker = this.#broker(`run feed "${this.name}"`);
    const run = await broker.enter(() =>
      runFeed({
        following: this.#follow({ key, from }, broker),
        from,
        timeout,
        signal,
        onNotified: (callback) => stopOnNotify ? this.#listen(key, callback) : () => {},
      }, handler)
    );
    if (run.reason === "timeout") this.#counts.timeouts++;
    return run;
  }

  /**
   * Waits until the event with an id is committed.
   *
   * @throws {TimeoutError} if it is not in time
   * @throws {TenantError} without a tenant, or if the event belongs to another one
   */
  async waitFor(options: WaitForOptions): Promise<FeedEvent<Event>> {
    const what = `Cannot wait for an event of feed "${this.name}"`;
    const wanted = checkWaitFor(what, options);
    const { key, id } = wanted;
    const waiting = this.#reading(
      `wait for an event of feed "${this.name}"`,
      (open) =>
        waitForEvent(what, wanted, {
          pollInterval: this.#checked.pollInterval,
          ongoing: this.#ongoing,
          find: () => open.find(key, id),
          listen: (callback) => this.#listen(key, callback),
        }),
    );
    try {
      return await this.#ongoing.track(waiting);
    } catch (error) {
      if (error instanceof TimeoutError) this.#counts.timeouts++;
      throw error;
    }
  }

  /**
   * The seq of a scope's last event; 0 if there is none.
   *
   * @throws {TenantError} without a tenant, or if the scope belongs to another one
   */
  async head(key: ScopeKey): Promise<number> {
    const checked = checkScope(`Cannot read feed "${this.name}"`, key);
    return await this.#reading(`read feed "${this.name}"`, (open) => open.head(checked));
  }

  /**
   * An entity as it is; `undefined` if it was never written, or is deleted.
   *
   * @throws {TenantError} without a tenant, or if the scope belongs to another one
   */
  async entity(
    options: ScopeKey & { readonly entity: string },
  ): Promise<EntityState<State> | undefined> {
    const what = `Cannot read feed "${this.name}"`;
    const key = checkScope(what, options);
    checkName(what, "entity", options.entity);
    return await this.#reading(
      `read feed "${this.name}"`,
      (open) => open.entity(key, options.entity),
    );
  }

  /**
   * A whole scope as it is at one moment, read by one statement; follow it from its `seq`.
   *
   * @throws {TenantError} without a tenant, or if the scope belongs to another one
   */
  async snapshot(key: ScopeKey): Promise<Snapshot<State>> {
    const checked = checkScope(`Cannot read feed "${this.name}"`, key);
    return await this.#reading(`read feed "${this.name}"`, (open) => open.snapshot(checked));
  }

  /** Asks the database how it finds the events of a poll: whether by the index of its table. */
  async explain(): Promise<FeedPlan> {
    const at = { table: this.tables.events, limit: this.#checked.pollLimit };
    return await this.#reading(
      `explain feed "${this.name}"`,
      ({ broker: { pool }, statements }) => explainFeed(pool, statements, at),
    );
  }

  /** What it has done since it was made, in this process. */
  stats(): FeedStats {
    return this.#counts.stats;
  }

  #broker(what: string): RunningBroker {
    const broker = runningBrokers.get(this.#options.broker);
    if (broker !== undefined) return broker;
    throw new ClosedError(
      `Cannot ${what}: its broker is not connected; start its app, or use ` +
        `"await using broker = await new Broker(driver).connect()"`,
    );
  }

  #reading<T>(what: string, read: (open: OpenFeed<Event, State>) => Promise<T>): Promise<T> {
    const open = this.#open(what);
    return open.broker.enter(async () => await read(await open.ready()));
  }

  /** One for each time that the broker is started. */
  #open(what: string): OpenFeed<Event, State> {
    const broker = this.#broker(what);
    if (this.#opened?.broker === broker) return this.#opened;
    const { createTables = false } = this.#options;
    const parts = { tables: this.tables, codecs: this.#codecs, createTables };
    return this.#opened = new OpenFeed(broker, parts);
  }

  async #writeSorted(
    writes: readonly EncodedWrite[],
    tx: unknown,
  ): Promise<ReadonlyMap<EncodedWrite, FeedWritten>> {
    const open = this.#open(`write to feed "${this.name}"`);
    const { broker, statements } = open;
    if (tx === undefined) {
      await open.ready();
      const written = await broker.pool.transaction(function* () {
        const all = new Map<EncodedWrite, FeedWritten>();
        for (const write of writes) all.set(write, yield* writeSteps(statements, write));
        return all;
      });
      this.#tell(written);
      return written;
    }
    // To look at the tables on another connection might wait for this transaction.
    const transaction = broker.openTransaction(tx);
    const written = new Map<EncodedWrite, FeedWritten>();
    for (const write of writes) {
      written.set(write, await runStepsIn(transaction, writeSteps(statements, write)));
    }
    afterCommit(tx, () => this.#tell(written));
    return written;
  }

  /** After a commit. */
  #tell(all: ReadonlyMap<EncodedWrite, FeedWritten>): void {
    for (const [write, { seq, id, version, inserted }] of all) {
      if (!inserted) continue;
      this.#counts.written++;
      const { entity, event, createdAt } = write;
      const message: FeedMessage = {
        seq,
        id,
        entity: entity ?? null,
        version: version ?? null,
        event,
        createdAt,
      };
      this.#options.broadcast?.send(feedTopic(this.name, write), message, { id });
    }
  }

  #follow(
    { key, from }: FollowPlace,
    broker: RunningBroker,
  ): AsyncIterableIterator<FeedEvent<Event>> {
    const follower = new Follower(this.#source(key), from, this.#counts);
    return following(follower, this.#ongoing, (work) => broker.enter(work));
  }

  #source(key: ScopeKey): EventSource<Event> {
    const { pollInterval, pollLimit } = this.#checked;
    const open = () => this.#open(`follow feed "${this.name}"`).ready();
    return {
      ...key,
      pollInterval,
      isBroadcast: this.#options.broadcast !== undefined,
      head: async () => await (await open()).head(key),
      poll: async (after) => await (await open()).poll(key, after, pollLimit),
      isLast: (events) => events.length < pollLimit,
      listen: (callback) => this.#listen(key, callback),
      decode: (stored, source) =>
        this.#open(`follow feed "${this.name}"`).decode(key, stored, source),
    };
  }

  #listen(key: ScopeKey, callback: (message: FeedMessage | undefined) => void): () => void {
    const { broadcast } = this.#options;
    if (broadcast === undefined) return () => {};
    const topic = feedTopic(this.name, key);
    const ends = [
      broadcast.subscribe(topic, ({ message }) => callback(readFeedMessage(message))),
      broadcast.onMissed(() => callback(undefined)),
    ];
    return () => ends.forEach((end) => end());
  }
}

/** By code units, the same on every host. */
function compare(one: string, two: string): number {
  return one < two ? -1 : one > two ? 1 : 0;
}
