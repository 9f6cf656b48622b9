import { afterCommit } from "../after_commit.ts";
import type { Component } from "../component.ts";
import type { DatabaseName } from "../ddl_text.ts";
import type { FeedTables, PollPlan, ScopeKey, StoredEvent } from "../driver/dialect.ts";
import { type Duration, toMilliseconds } from "../duration.ts";
import { ClosedError, DeclarationError, TimeoutError } from "../errors.ts";
import { after, monotonic } from "../clock.ts";
import { json } from "../json.ts";
import { refuseUnknownOptions } from "../refuse_unknown_options.ts";
import { type RunningBroker, runningBrokers } from "../running_broker.ts";
import { Wake } from "../wake.ts";
import { problemOfName } from "./check_name.ts";
import { checkScope } from "./check_scope.ts";
import { checkWatermark } from "./check_watermark.ts";
import { encodeWrite, type FeedCodecs } from "./encode_write.ts";
import type { EventSource } from "./event_source.ts";
import { explainPoll } from "./explain_poll.ts";
import { feedDdl } from "./feed_ddl.ts";
import type { FeedEvent } from "./feed_event.ts";
import { type FeedMessage, feedTopic, readFeedMessage } from "./feed_message.ts";
import { type CheckedFeedOptions, checkFeedOptions, type FeedOptions } from "./feed_options.ts";
import { FeedCounts, type FeedStats } from "./feed_stats.ts";
import { feedTables, openFeedTables } from "./feed_tables.ts";
import type { FeedWrite, FeedWritten } from "./feed_write.ts";
import { Follower } from "./follower.ts";
import { OpenFeed } from "./open_feed.ts";
import { runStepsIn } from "./run_steps_in.ts";
import type { EncodedWrite } from "./write_steps.ts";
import { writeSteps } from "./write_steps.ts";
import { WatermarkError } from "./watermark_error.ts";

/** Which scope is followed, and from where. */
export interface FollowOptions extends ScopeKey {
  /** The watermark: the seq of the last event that was seen; 0, all events, unless given. */
  readonly from?: number;
}

/** How a feed is followed for a while. */
export interface RunOptions extends FollowOptions {
  /** How long; without it until the feed stops or the signal aborts. */
  readonly timeout?: Duration;
  /** Whether it ends as soon as an event is told of, since polling is then not needed; default false. */
  readonly stopOnNotify?: boolean;
  /** Ends it. */
  readonly signal?: AbortSignal;
}

/** How a feed was followed for a while. */
export interface FeedRun {
  /** The seq of the last event that was handled. */
  readonly watermark: number;
  /** How many events were handled. */
  readonly events: number;
  /** Why it ended. */
  readonly reason: "timeout" | "notified" | "aborted" | "closed";
}

/** Which event is waited for. */
export interface WaitForOptions extends ScopeKey {
  /** Its id. */
  readonly id: string;
  /** How long; default 30 s. */
  readonly timeout?: Duration;
}

/** An entity as it is. */
export interface EntityState<State> {
  /** Which one it is. */
  readonly entity: string;
  /** How often it has been written; what `expectedVersion` is compared with. */
  readonly version: number;
  /** The seq of the event with which it was written last. */
  readonly seq: number;
  /** Its state. */
  readonly state: State;
}

/** A scope as it is at one moment. */
export interface Snapshot<State> {
  /** The seq of its last event: follow from here. */
  readonly seq: number;
  /** Every entity that is not deleted, by name. */
  readonly entities: readonly EntityState<State>[];
}

/** How a poll finds its events. */
export interface FeedPlan {
  /** Whether it reads no other events than those that it returns. */
  readonly isServed: boolean;
  /** The index that it uses, if it does. */
  readonly index?: string;
  /** The plan in the database's own words. */
  readonly plan: string;
  /** What to do, unless it is served. */
  readonly fix?: string;
}

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
  /** What ends each that follows or waits. */
  readonly #active = new Set<() => void>();
  /** What they are at. */
  readonly #inFlight = new Set<Promise<unknown>>();
  #opening: { readonly broker: RunningBroker; readonly open: Promise<OpenFeed> } | undefined;

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
    const { event, state } = options;
    this.#codecs = {
      event: event === undefined ? json<Event>("event") : json("event", event),
      state: state === undefined ? json<State>("state") : json("state", state),
    };
  }

  /** The statements that create its tables, as text for a migration. */
  ddl(database: DatabaseName): string {
    return feedDdl(database, this.tables);
  }

  /** Makes sure that its tables are there. Called by the app. */
  async start(): Promise<void> {
    await this.#open("start");
  }

  /** Ends all that follow it, or wait for an event. Called by the app. */
  async stop(): Promise<void> {
    for (const end of this.#active) end();
    await Promise.allSettled(this.#inFlight);
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
    refuseUnknownOptions(`Cannot follow feed "${this.name}"`, options, FOLLOW);
    const follower = this.#follower("follow", options);
    const broker = this.#broker(`follow feed "${this.name}"`);
    const events = follower.events();
    const end = (): void => follower.end();
    const ended = <T extends { readonly done?: boolean }>(result: T): T => {
      if (result.done) this.#active.delete(end);
      return result;
    };
    this.#active.add(end);
    const iterator: AsyncIterableIterator<FeedEvent<Event>> = {
      next: async () => {
        try {
          return ended(await this.#track(broker.enter(() => events.next())));
        } catch (error) {
          this.#active.delete(end);
          throw error;
        }
      },
      return: async () => {
        end();
        return ended(await events.return());
      },
      [Symbol.asyncIterator]: () => iterator,
    };
    return iterator;
  }

  /**
   * The events of a scope after a watermark, as many as one poll gives.
   *
   * @throws {WatermarkError} if the watermark is none, or ahead of the scope
   * @throws {TenantError} without a tenant, or if the scope belongs to another one
   */
  async pollOnce(options: FollowOptions): Promise<readonly FeedEvent<Event>[]> {
    const what = `Cannot poll feed "${this.name}"`;
    refuseUnknownOptions(what, options, FOLLOW);
    const key = checkScope(what, options);
    const from = checkWatermark(what, options.from);
    return await this.#opened(`poll feed "${this.name}"`, async (open) => {
      // The events are read first: whatever was there then is there still.
      const events = await open.poll(key, from, this.#checked.pollLimit);
      this.#counts.polls++;
      const head = await open.head(key);
      if (from > head) {
        throw new WatermarkError(
          `${what} from ${from}: the last event of scope "${key.scope}" is ${head}; nothing was read`,
        );
      }
      return await Promise.all(events.map((each) => this.#decode(key, each, "poll")));
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
    const { timeout, stopOnNotify = false, signal, ...place } = options;
    const what = `Cannot run feed "${this.name}"`;
    refuseUnknownOptions(what, options, [...FOLLOW, "timeout", "stopOnNotify", "signal"]);
    const key = checkScope(what, place);
    let watermark = checkWatermark(what, place.from);
    const limit = timeout === undefined
      ? undefined
      : toMilliseconds(timeout, `the timeout of feed "${this.name}"`);
    let reason: FeedRun["reason"] = "closed";
    let events = 0;
    return await this.#opened(`run feed "${this.name}"`, async () => {
      const following = this.follow(place);
      const end = (why: FeedRun["reason"]): void => {
        if (reason === "closed") reason = why;
        void following.return!();
      };
      const aborted = (): void => end("aborted");
      const timer = limit === undefined ? undefined : after(limit, () => end("timeout"));
      const unlisten = stopOnNotify ? this.#listen(key, () => end("notified")) : () => {};
      signal?.addEventListener("abort", aborted);
      if (signal?.aborted) aborted();
      try {
        for await (const event of following) {
          await handler(event);
          watermark = event.seq;
          events++;
          if (reason !== "closed") break;
        }
      } finally {
        timer?.cancel();
        unlisten();
        signal?.removeEventListener("abort", aborted);
      }
      if (reason === "timeout") this.#counts.timeouts++;
      return { watermark, events, reason };
    });
  }

  /**
   * Waits until the event with an id is committed.
   *
   * @throws {TimeoutError} if it is not in time
   * @throws {TenantError} without a tenant, or if the event belongs to another one
   */
  async waitFor(options: WaitForOptions): Promise<FeedEvent<Event>> {
    const what = `Cannot wait for an event of feed "${this.name}"`;
    refuseUnknownOptions(what, options, ["tenant", "scope", "id", "timeout"]);
    const key = checkScope(what, options);
    const { id, timeout = 30_000 } = options;
    const problem = problemOfName(id);
    if (problem !== undefined) {
      throw new DeclarationError(`${what}: its id ${problem}; give { id }`);
    }
    const limit = toMilliseconds(timeout, `the timeout of feed "${this.name}"`);
    const waiting = this.#opened(`wait for an event of feed "${this.name}"`, async (open) => {
      const wake = new Wake();
      let isClosed = false;
      const close = (): void => {
        isClosed = true;
        wake.call();
      };
      const unlisten = this.#listen(key, (message) => {
        if (message === undefined || message.id === id) wake.call();
      });
      this.#active.add(close);
      try {
        const end = monotonic() + limit;
        for (;;) {
          wake.forget();
          const found = await this.#find(open, key, id);
          if (found !== undefined) return found;
          if (isClosed) throw new ClosedError(`${what}: the app stopped before it was written`);
          const left = end - monotonic();
          if (left <= 0) break;
          await wake.sleep(Math.min(left, this.#checked.pollInterval));
        }
      } finally {
        unlisten();
        this.#active.delete(close);
      }
      this.#counts.timeouts++;
      throw new TimeoutError(
        `Event "${id}" of scope "${key.scope}" was not written within ${limit} ms`,
      );
    });
    return await this.#track(waiting);
  }

  /**
   * The seq of a scope's last event; 0 if there is none.
   *
   * @throws {TenantError} without a tenant, or if the scope belongs to another one
   */
  async head(key: ScopeKey): Promise<number> {
    const checked = checkScope(`Cannot read feed "${this.name}"`, key);
    return await this.#opened(`read feed "${this.name}"`, (open) => open.head(checked));
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
    const { entity } = options;
    const problem = problemOfName(entity);
    if (problem !== undefined) throw new DeclarationError(`${what}: its entity ${problem}`);
    return await this.#opened(`read feed "${this.name}"`, async (open) => {
      const { broker: { pool }, statements } = open;
      const [row] = await pool.query(statements.readEntity, { ...key, entity });
      if (row === undefined) await open.head(key);
      if (row === undefined || row.state === null) return undefined;
      return await this.#decodeState(entity, row);
    });
  }

  /**
   * A whole scope as it is at one moment, read by one statement; follow it from its `seq`.
   *
   * @throws {TenantError} without a tenant, or if the scope belongs to another one
   */
  async snapshot(key: ScopeKey): Promise<Snapshot<State>> {
    const checked = checkScope(`Cannot read feed "${this.name}"`, key);
    return await this.#opened(`read feed "${this.name}"`, async (open) => {
      const { broker: { pool }, statements } = open;
      const rows = await pool.query(statements.snapshot, checked);
      // Another tenant's scope has no row here, and is refused.
      if (rows.length === 0) return { seq: await open.head(checked), entities: [] };
      const written = rows.filter(({ entity }) => entity !== null);
      const entities = await Promise.all(
        written.map((row) => this.#decodeState(String(row.entity), row)),
      );
      return { seq: Number(rows[0]!.scope_seq), entities };
    });
  }

  /** Asks the database how it finds the events of a poll: whether by the index of its table. */
  async explain(): Promise<FeedPlan> {
    return await this.#opened(`explain feed "${this.name}"`, async ({ broker, statements }) => {
      const { index, text }: PollPlan = await explainPoll(
        broker.pool,
        statements,
        this.#checked.pollLimit,
      );
      if (index !== undefined) return { isServed: true, index, plan: text };
      return {
        isServed: false,
        plan: text,
        fix: `no index of "${this.tables.events}" serves the poll: give it the primary key ` +
          `(tenant, scope, seq), or a unique index of these columns in this order`,
      };
    });
  }

  /** What it has done since it was made, in this process. */
  stats(): FeedStats {
    return this.#counts.stats;
  }

  #track<T>(work: Promise<T>): Promise<T> {
    const end = (): void => void this.#inFlight.delete(work);
    this.#inFlight.add(work);
    work.then(end, end);
    return work;
  }

  #broker(what: string): RunningBroker {
    const broker = runningBrokers.get(this.#options.broker);
    if (broker !== undefined) return broker;
    throw new ClosedError(
      `Cannot ${what}: its broker is not connected; start its app, or use ` +
        `"await using broker = await new Broker(driver).connect()"`,
    );
  }

  #opened<T>(what: string, work: (open: OpenFeed) => Promise<T>): Promise<T> {
    const broker = this.#broker(what);
    return broker.enter(async () => await work(await this.#open(what)));
  }

  /** Its tables are looked at once for each start of the broker. */
  #open(what: string): Promise<OpenFeed> {
    const broker = this.#broker(what);
    if (this.#opening?.broker !== broker) {
      const open = this.#check(new OpenFeed(broker, this.tables));
      this.#opening = { broker, open };
      open.catch(() => {
        if (this.#opening?.open === open) this.#opening = undefined;
      });
    }
    return this.#opening.open;
  }

  async #check(open: OpenFeed): Promise<OpenFeed> {
    const { broker: { pool }, statements } = open;
    const { createTables = false } = this.#options;
    await openFeedTables(pool, this.tables, statements, createTables);
    return open;
  }

  async #writeSorted(
    writes: readonly EncodedWrite[],
    tx: unknown,
  ): Promise<ReadonlyMap<EncodedWrite, FeedWritten>> {
    if (tx === undefined) {
      const { broker, statements } = await this.#open(`write to feed "${this.name}"`);
      const written = await broker.pool.transaction(function* () {
        const all = new Map<EncodedWrite, FeedWritten>();
        for (const write of writes) all.set(write, yield* writeSteps(statements, write));
        return all;
      });
      this.#tell(written);
      return written;
    }
    // To look at the tables on another connection might wait for this transaction.
    const broker = this.#broker(`write to feed "${this.name}"`);
    const { statements } = new OpenFeed(broker, this.tables);
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

  #follower(verb: string, { tenant, scope, from }: FollowOptions): Follower<Event> {
    const what = `Cannot ${verb} feed "${this.name}"`;
    const key = checkScope(what, { tenant, scope });
    return new Follower(this.#source(key), checkWatermark(what, from), this.#counts);
  }

  #source(key: ScopeKey): EventSource<Event> {
    const { pollInterval, pollLimit } = this.#checked;
    const open = () => this.#open(`follow feed "${this.name}"`);
    return {
      ...key,
      pollInterval,
      isBroadcast: this.#options.broadcast !== undefined,
      head: async () => await (await open()).head(key),
      poll: async (after) => await (await open()).poll(key, after, pollLimit),
      isLast: (events) => events.length < pollLimit,
      listen: (callback) => this.#listen(key, callback),
      decode: (stored, source) => this.#decode(key, stored, source),
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

  async #find(open: OpenFeed, key: ScopeKey, id: string): Promise<FeedEvent<Event> | undefined> {
    const { broker: { pool }, statements } = open;
    const [row] = await pool.query(statements.findEvent, { id });
    if (row === undefined || row.tenant !== key.tenant || row.scope !== key.scope) {
      await open.head(key);
      return undefined;
    }
    const [event] = await open.poll(key, Number(row.seq) - 1, 1);
    return await this.#decode(key, event!, "poll");
  }

  async #decode(
    { tenant, scope }: ScopeKey,
    stored: FeedMessage | StoredEvent,
    source: FeedEvent["source"],
  ): Promise<FeedEvent<Event>> {
    const { seq, id, entity, version, createdAt } = stored;
    return {
      tenant,
      scope,
      seq,
      id,
      event: await this.#codecs.event.decode(stored.event),
      ...(entity === null ? {} : { entity }),
      ...(version === null ? {} : { version }),
      createdAt: new Date(createdAt),
      source,
    };
  }

  async #decodeState(
    entity: string,
    { version, seq, state }: Readonly<Record<string, unknown>>,
  ): Promise<EntityState<State>> {
    return {
      entity,
      version: Number(version),
      seq: Number(seq),
      state: await this.#codecs.state.decode(String(state)),
    };
  }
}

/** By code units, the same on every host. */
function compare(one: string, two: string): number {
  return one < two ? -1 : one > two ? 1 : 0;
}

const FOLLOW: readonly (keyof FollowOptions)[] = ["tenant", "scope", "from"];
