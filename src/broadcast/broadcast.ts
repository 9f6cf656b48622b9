import { afterCommit } from "../after_commit.ts";
import type { App } from "../app.ts";
import { now, thisContext, uniqueId } from "../clock.ts";
import type { Component } from "../component.ts";
import { type Duration, toMilliseconds } from "../duration.ts";
import { ClosedError, PayloadError } from "../errors.ts";
import { logOf } from "../log.ts";
import { refuseUnknownOptions } from "../refuse_unknown_options.ts";
import { asError } from "../thrown.ts";
import { toJson } from "../to_json.ts";
import { within } from "../within.ts";
import type { BroadcastMessage } from "./broadcast_message.ts";
import { type BroadcastOptions, readBroadcastOptions } from "./broadcast_options.ts";
import { type BroadcastStats, sumOfCounts } from "./broadcast_stats.ts";
import { type Callback, Callbacks } from "./callbacks.ts";
import { Envelope, readEnvelope } from "./envelope.ts";
import { Outlet } from "./outlet.ts";
import { RecentIds } from "./recent_ids.ts";
import { RecentLatencies } from "./recent_latencies.ts";
import type { Unsubscribe } from "./unsubscribe.ts";

/** How one message is sent. */
export interface SendOptions {
  /**
   * By which it is told apart from others of its topic: of several with the same id, a subscriber gets
   * the first. A random one unless given.
   */
  readonly id?: string;
}

/**
 * Tells other processes, and this one, what has happened, as best it can: a message may be lost, so
 * whoever relies on it also polls. Nothing that fails here reaches whoever sends.
 *
 * A component of an app, `app.withComponent(broadcast)`; or opened and shut down by hand.
 */
export class Broadcast implements Component, AsyncDisposable {
  /** What it is called in logs and in the app. */
  readonly name: string;
  readonly #outlets: readonly Outlet[];
  readonly #subscribers = new Map<string, Callbacks<BroadcastMessage>>();
  readonly #missed = new Callbacks<string>((error) => this.#countError("onMissed", error));
  readonly #recentIds = new RecentIds(IDS_KEPT);
  readonly #latencies = new RecentLatencies(LATENCIES_KEPT);
  readonly #channelNames: ReadonlyMap<Outlet, string>;
  #inContext: <T>(code: () => T) => T = (code) => code();
  #subscriberErrors = 0;
  #last: BroadcastMessage | undefined;
  #isOpen = false;
  #longestDrain = LONGEST_DRAIN;

  /**
   * Declares it; nothing connects yet. What is sent before it is open waits.
   *
   * @throws {DeclarationError} if there is no channel, one is given twice, or an option is unknown
   * @throws {TypeError} if `retryPause` is no duration
   * @throws {RangeError} if a number is no whole number, or too small
   */
  constructor(options: BroadcastOptions) {
    const { name, channels, rules } = readBroadcastOptions(options);
    this.name = name;
    const outlets = channels.map((channel) =>
      [new Outlet(name, channel, rules), channel.name] as const
    );
    this.#outlets = outlets.map(([outlet]) => outlet);
    this.#channelNames = new Map(outlets);
  }

  /**
   * Sends a message through every channel. Returns at once, whatever becomes of the message: see
   * `stats`.
   *
   * @param message what has a JSON form
   * @throws {PayloadError} if the message has no JSON form
   * @throws {TypeError} if the topic or the id is not a text, or empty
   */
  send(topic: string, message: unknown, options?: SendOptions): void {
    this.#prepare(topic, message, options)();
  }

  /**
   * Sends a message once the transaction is committed, and never if it is rolled back.
   *
   * @param tx what `broker.transaction`, `postgresTx` and their like have given
   * @returns false if the transaction is somebody else's: nothing is sent then, so `send` it once it is
   * committed
   * @throws {PayloadError} if the message has no JSON form, while the transaction can still be rolled back
   * @throws {TypeError} if the topic or the id is not a text, or empty
   */
  sendAfterCommit(tx: unknown, topic: string, message: unknown, options?: SendOptions): boolean {
    return afterCommit(tx, this.#prepare(topic, message, options));
  }

  /**
   * Calls back for each message of the topic that arrives, from any process, this one included; once for
   * each id, whatever the number of channels. Messages of one channel come in the order in which they
   * were sent. A callback that throws, or rejects, is logged and counted.
   *
   * @typeParam T what is sent to the topic, taken on trust
   * @returns what ends it: a function, for `using` too
   * @throws {TypeError} if the topic is not a text, or empty
   */
  subscribe<T = unknown>(topic: string, callback: Callback<BroadcastMessage<T>>): Unsubscribe {
    checkText("topic", topic);
    let callbacks = this.#subscribers.get(topic);
    if (callbacks === undefined) {
      callbacks = new Callbacks((error) => this.#countError(topic, error));
      this.#subscribers.set(topic, callbacks);
    }
    return callbacks.add(callback as Callback<BroadcastMessage>);
  }

  /**
   * Calls back when messages may have been missed, because a channel was not connected and is again: time
   * to poll.
   *
   * @param callback is called with the channel's name
   * @returns what ends it
   */
  onMissed(callback: Callback<string>): Unsubscribe {
    return this.#missed.add(callback);
  }

  /** What has become of messages since it was made. */
  stats(): BroadcastStats {
    const channels = this.#outlets.map((outlet) => outlet.stats);
    return { ...sumOfCounts(channels), subscriberErrors: this.#subscriberErrors, channels };
  }

  /** The message that arrived last, duplicates left out; `undefined` if none has. */
  lastMessage(): BroadcastMessage | undefined {
    return this.#last;
  }

  /**
   * What so many percent of the last 1,000 messages to subscribers did not exceed from `send` to
   * callback, in milliseconds; `undefined` if there were none. Between two machines it is as exact as
   * their clocks.
   *
   * @param percent above 0, and 100 at the most
   * @throws {RangeError} if there is no such percentile
   */
  latencyPercentile(percent: number): number | undefined {
    return this.#latencies.percentile(percent);
  }

  /** Opens the channels with the app; see `open`. */
  async start(app: App): Promise<void> {
    await this.open();
    // The rest of the time that an app has for closing its components is for the channels.
    this.#longestDrain = Math.min(LONGEST_DRAIN, app.deadlines.closeTimeout * DRAIN_PART);
  }

  /** Goes on sending: handlers that finish still commit. */
  stop(signal: AbortSignal): void {
    // A process that has been killed sends nothing.
    if (signal.aborted) this.#longestDrain = 0;
  }

  /** Shuts down with the app, which gives it 3/10 of `closeTimeout` for what waits, and 2 s at the most. */
  async close(): Promise<void> {
    await this.shutdown(this.#longestDrain);
  }

  /**
   * Opens the channels. One whose package is absent is left out, with a warning; one that cannot be
   * opened now is opened in the background.
   *
   * @throws {ClosedError} if it is open
   * @throws {DeclarationError} if a channel can never be opened; all others are closed then
   */
  async open(): Promise<void> {
    if (this.#isOpen) {
      throw new ClosedError(`Cannot open the broadcast "${this.name}" again: shut it down first`);
    }
    this.#isOpen = true;
    this.#longestDrain = LONGEST_DRAIN;
    this.#inContext = thisContext();
    const opened = await Promise.allSettled(this.#outlets.map((outlet) => this.#open(outlet)));
    const failed = opened.find(({ status }) => status === "rejected");
    if (failed?.status !== "rejected") return;
    await this.shutdown(0);
    throw failed.reason;
  }

  /**
   * Waits until every message that was sent has been taken by its channels, or given up.
   *
   * @returns false if the time is up before
   */
  async drain(timeout: Duration): Promise<boolean> {
    const ms = toMilliseconds(timeout, "the timeout of drain");
    return await within(ms, Promise.all(this.#outlets.map((outlet) => outlet.idle())));
  }

  /**
   * Drains, then closes the channels. What waits longer is dropped, as is all that is sent from now on.
   * Subscribers stay, and get messages again if it is opened again. A channel that cannot be closed is
   * logged.
   *
   * @param drain how long it may take to send what waits; default 2 s
   */
  async shutdown(drain: Duration = LONGEST_DRAIN): Promise<void> {
    if (!this.#isOpen) return;
    const ms = toMilliseconds(drain, "the time to drain");
    if (ms > 0) await this.drain(ms);
    this.#isOpen = false;
    await Promise.all(this.#outlets.map((outlet) => this.#close(outlet)));
  }

  /** Shuts down. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.shutdown();
  }

  /** What can be wrong with a message is found now; what is called later does not throw. */
  #prepare(topic: string, message: unknown, options: SendOptions = {}): () => void {
    refuseUnknownOptions("Cannot send a broadcast", options, SEND_OPTIONS);
    checkText("topic", topic);
    const { id = uniqueId() } = options;
    checkText("id", id);
    const json = encode(topic, message);
    return () => {
      const sentAt = this.#inContext(now);
      const envelope = new Envelope({ id, topic, sentAt }, json);
      for (const outlet of this.#outlets) outlet.submit(envelope);
    };
  }

  #open(outlet: Outlet): Promise<void> {
    const channel = this.#channelNames.get(outlet)!;
    return outlet.open({
      receive: (text) => this.#inContext(() => this.#receive(outlet, text)),
      missed: () => this.#inContext(() => this.#missed.call(channel)),
    });
  }

  async #close(outlet: Outlet): Promise<void> {
    try {
      await outlet.close();
    } catch (error) {
      const values = { broadcast: this.name, channel: this.#channelNames.get(outlet), error };
      LOG.error("Channel {channel} of broadcast {broadcast} was not closed: {error}", values);
    }
  }

  #receive(outlet: Outlet, text: string): void {
    const message = readEnvelope(text);
    if (message === undefined) return outlet.count("ignored");
    const { topic, id, sentAt } = message;
    if (!this.#recentIds.add(JSON.stringify([topic, id]))) return outlet.count("duplicates");
    outlet.count("received");
    this.#last = message;
    const subscribers = this.#subscribers.get(topic);
    if (subscribers === undefined || subscribers.isEmpty) return;
    // The clocks of two machines differ.
    this.#latencies.add(Math.max(0, now() - sentAt));
    subscribers.call(message);
  }

  #countError(topic: string, error: Error): void {
    this.#subscriberErrors++;
    const values = { broadcast: this.name, topic, error };
    LOG.error("A callback of {topic} of broadcast {broadcast} failed: {error}", values);
  }
}

function encode(topic: string, message: unknown): string {
  try {
    return toJson(message);
  } catch (thrown) {
    const cause = asError(thrown, "toJSON");
    throw new PayloadError(`Cannot send to topic "${topic}": ${cause.message}`, { cause });
  }
}

function checkText(what: string, value: unknown): void {
  if (typeof value === "string" && value !== "") return;
  const given = value === "" ? "an empty text" : typeof value;
  throw new TypeError(`Cannot use ${given} as ${what} of a broadcast: give a text`);
}

/** How many ids are remembered, to know a message that comes again. */
const IDS_KEPT = 10_000;
const LATENCIES_KEPT = 1_000;
/** How long a shutdown waits for what is to be sent, in milliseconds. */
const LONGEST_DRAIN = 2_000;
/** Components have 2/5 of an app's closeTimeout, together. */
const DRAIN_PART = 0.3;
const SEND_OPTIONS: readonly string[] = ["id"];
const LOG = logOf("broadcast");
