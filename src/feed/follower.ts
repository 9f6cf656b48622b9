import { AFTER_DISCONNECT, backoff } from "../backoff.ts";
import { monotonic } from "../clock.ts";
import { DriverError } from "../errors.ts";
import { logOf } from "../log.ts";
import { Wake } from "../wake.ts";
import type { EventSource } from "./event_source.ts";
import type { FeedEvent } from "./feed_event.ts";
import type { FeedMessage } from "./feed_message.ts";
import type { FeedCounts } from "./feed_stats.ts";
import { WatermarkError } from "./watermark_error.ts";

/**
 * Hands on every event of a scope, in order, once: those that are told as they come, the others as polls
 * find them. An event that is told is handed on only if it is the next; else a poll finds what is
 * before it, since numbers are committed in order.
 */
export class Follower<Event> {
  readonly #source: EventSource<Event>;
  readonly #counts: FeedCounts;
  readonly #wake = new Wake();
  /** Events that were told and not handed on, by number. */
  readonly #told = new Map<number, FeedMessage>();
  /** Events that a poll has found, in order. */
  #polled: FeedMessage[] = [];
  /** Events that a poll has found first, and whose telling has not come. */
  readonly #recovered = new Set<number>();
  #watermark: number;
  /** What was written before that was never told to this follower. */
  #head = 0;
  #pollAt = -Infinity;
  #failures = 0;
  #hasEnded = false;

  /** Of events after this number. */
  constructor(source: EventSource<Event>, after: number, counts: FeedCounts) {
    this.#source = source;
    this.#watermark = after;
    this.#counts = counts;
  }

  /** Lets it end; it hands on nothing more. */
  end(): void {
    this.#hasEnded = true;
    this.#wake.call();
  }

  /** The events, until it has ended. */
  async *events(): AsyncGenerator<FeedEvent<Event>, void, undefined> {
    const stop = this.#source.listen((message) => this.#hear(message));
    try {
      this.#head = await this.#checkedHead();
      while (!this.#hasEnded) {
        const next = this.#next();
        if (next === undefined) await this.#look();
        else yield await this.#handOn(next.message, next.source);
      }
    } finally {
      stop();
    }
  }

  #hear(message: FeedMessage | undefined): void {
    if (message === undefined) this.#pollAt = -Infinity;
    else if (message.seq <= this.#watermark) return this.#countTwice(message.seq);
    else if (this.#told.size < MOST_TOLD) this.#told.set(message.seq, message);
    this.#wake.call();
  }

  #countTwice(seq: number): void {
    this.#counts.duplicated++;
    if (this.#recovered.delete(seq)) this.#counts.late++;
  }

  /** Before it begins: a watermark that lies ahead would wait for events that others have seen. */
  async #checkedHead(): Promise<number> {
    const { tenant, scope } = this.#source;
    const head = await this.#reading(() => this.#source.head()) ?? 0;
    if (this.#hasEnded || this.#watermark <= head) return head;
    throw new WatermarkError(
      `Cannot follow scope "${scope}" of tenant "${tenant}" from ${this.#watermark}: its last event is ` +
        `${head}; give a watermark that this database has given, or 0 for all events`,
    );
  }

  #next(): { readonly message: FeedMessage; readonly source: FeedEvent["source"] } | undefined {
    const told = this.#told.get(this.#watermark + 1);
    if (told !== undefined) return { message: told, source: "broadcast" };
    while (this.#polled.length > 0 && this.#polled[0]!.seq <= this.#watermark) this.#polled.shift();
    const polled = this.#polled[0];
    return polled === undefined ? undefined : { message: polled, source: "poll" };
  }

  async #handOn(message: FeedMessage, source: FeedEvent["source"]): Promise<FeedEvent<Event>> {
    const event = await this.#source.decode(message, source);
    this.#watermark = message.seq;
    this.#told.delete(message.seq);
    if (source === "broadcast") this.#counts.broadcast++;
    else if (this.#source.isBroadcast && message.seq > this.#head) {
      this.#counts.recovered++;
      this.#recovered.add(message.seq);
      if (this.#recovered.size > MOST_TOLD) this.#recovered.delete(first(this.#recovered));
    }
    return event;
  }

  /** Polls if it is time to, or something is missing; else sleeps until then. */
  async #look(): Promise<void> {
    this.#wake.forget();
    for (const seq of this.#told.keys()) if (seq <= this.#watermark) this.#told.delete(seq);
    const wait = this.#told.size > 0 ? 0 : this.#pollAt - monotonic();
    if (wait > 0) return await this.#wake.sleep(wait);
    const ahead = [...this.#told.keys()];
    const polled = await this.#reading(() => this.#source.poll(this.#watermark));
    if (polled === undefined) return;
    this.#counts.polls++;
    this.#polled = [...polled];
    if (polled.length === 0) {
      // What was told is not there: the telling was not of this database.
      for (const seq of ahead) this.#told.delete(seq);
      if (await this.#isBehind()) return;
    }
    this.#pollAt = this.#source.isLast(polled)
      ? monotonic() + this.#source.pollInterval
      : -Infinity;
  }

  /**
   * Whether there are events though a poll has found none, because they came just then.
   *
   * @throws {WatermarkError} if the scope has fewer events than were seen: its numbers are given anew
   */
  async #isBehind(): Promise<boolean> {
    const { tenant, scope } = this.#source;
    const head = await this.#reading(() => this.#source.head());
    if (head === undefined || head >= this.#watermark) return head !== this.#watermark;
    throw new WatermarkError(
      `Cannot follow scope "${scope}" of tenant "${tenant}" on from ${this.#watermark}: its last event ` +
        `is now ${head}; the database was set back; take a snapshot and follow from its seq`,
    );
  }

  /** Tries again while the database cannot be reached; `undefined` if nothing was read. */
  async #reading<T>(read: () => Promise<T>): Promise<T | undefined> {
    for (;;) {
      try {
        const result = await read();
        if (this.#failures > 0) LOG.info("Feed scope {scope} is read again", this.#place);
        this.#failures = 0;
        return result;
      } catch (error) {
        if (this.#hasEnded) return undefined;
        if (!isPassing(error)) throw error;
        const values = { ...this.#place, error };
        if (this.#failures++ === 0) LOG.error("Feed scope {scope} cannot be read: {error}", values);
      }
      this.#wake.forget();
      await this.#wake.sleep(backoff(this.#failures, AFTER_DISCONNECT));
      if (this.#hasEnded) return undefined;
    }
  }

  get #place(): { readonly tenant: string; readonly scope: string } {
    const { tenant, scope } = this.#source;
    return { tenant, scope };
  }
}

function isPassing(error: unknown): boolean {
  return error instanceof DriverError && ["conflict", "disconnected"].includes(error.kind);
}

function first<T>(values: Iterable<T>): T {
  for (const value of values) return value;
  throw new RangeError("There is no first of none");
}

/** How many events a follower keeps that were told and are not the next; others are polled for. */
const MOST_TOLD = 1_000;
const LOG = logOf("feed");
