import type { Channel, ChannelListener } from "../channel.ts";
import { inRealTime, sleep, thisContext } from "../clock.ts";
import { logOf } from "../log.ts";
import { asError } from "../thrown.ts";
import { within } from "../within.ts";
import type { SendRules } from "./broadcast_options.ts";
import { type ChannelState, type ChannelStats, noCounts } from "./broadcast_stats.ts";
import { ChannelOpening } from "../channel_opening.ts";
import type { Envelope } from "./envelope.ts";

/** One channel of a broadcast: what waits to be sent through it, and the worker that sends it, in order. */
export class Outlet {
  readonly #broadcast: string;
  readonly #channel: Channel;
  readonly #rules: SendRules;
  readonly #counts = noCounts();
  readonly #queue: string[] = [];
  #state: "new" | "started" | "skipped" | "closed" = "new";
  #opening: ChannelOpening | undefined;
  #inContext: <T>(code: () => T) => T = (code) => code();
  /** Whether messages may be sent: the first attempt at opening has ended. */
  #mayWork = false;
  #isWorking = false;
  #directSends = 0;
  #change = Promise.withResolvers<void>();
  #isFailing = false;
  #isFull = false;

  constructor(broadcast: string, channel: Channel, rules: SendRules) {
    this.#broadcast = broadcast;
    this.#channel = channel;
    this.#rules = rules;
  }

  /** What has become of its messages. */
  get stats(): ChannelStats {
    const counts = { ...this.#counts, queued: this.#queue.length };
    return { channel: this.#channel.name, state: this.#channelState, ...counts };
  }

  get #channelState(): ChannelState {
    if (this.#state !== "started") return this.#state;
    return this.#opening?.isOpen ? "open" : "opening";
  }

  /** Counts what has arrived. */
  count(what: "received" | "duplicates" | "ignored"): void {
    this.#counts[what]++;
  }

  /**
   * Opens the channel, and sends what waits.
   *
   * @throws {DeclarationError} if it can never be opened
   */
  async open(listener: ChannelListener): Promise<void> {
    this.#inContext = thisContext();
    this.#state = "started";
    this.#isFull = false;
    const opening = this.#opening = new ChannelOpening(
      `Broadcast ${this.#broadcast}`,
      this.#channel,
      listener,
    );
    const isThere = await opening.open();
    if (opening.signal.aborted) return;
    if (isThere) {
      this.#mayWork = true;
      this.#wake();
    } else {
      this.#state = "skipped";
      this.#queue.length = 0;
      this.#changed();
    }
  }

  /** Sends a message as soon as those before it are sent. */
  submit(envelope: Envelope): void {
    if (this.#state === "skipped") return;
    if (this.#state === "closed") return this.#drop(new Error("it is shut down"));
    const { text, truncated } = envelope.textFor(this.#channel.limit);
    if (truncated) this.#counts.truncated++;
    if (this.#queue.length >= this.#rules.queue) {
      this.#inContext(() => void this.#sendDirectly(text));
      return;
    }
    this.#queue.push(text);
    this.#wake();
  }

  /** Resolves when nothing waits, and nothing is being sent. */
  async idle(): Promise<void> {
    while (this.#queue.length > 0 || this.#isWorking || this.#directSends > 0) {
      await this.#change.promise;
    }
  }

  /** Gives up what still waits, and closes the channel. */
  async close(): Promise<void> {
    if (this.#state !== "skipped") this.#state = "closed";
    this.#mayWork = false;
    this.#counts.dropped += this.#queue.length;
    this.#queue.length = 0;
    this.#changed();
    const opening = this.#opening;
    this.#opening = undefined;
    await opening?.close();
  }

  #wake(): void {
    if (!this.#mayWork || this.#isWorking) return;
    this.#isWorking = true;
    this.#inContext(() => void this.#work());
  }

  async #work(): Promise<void> {
    // Nothing that a channel, or a subscriber of this process, does may run within the writer's call.
    await Promise.resolve();
    while (this.#queue.length > 0) await this.#send(this.#queue.shift()!);
    this.#isWorking = false;
    this.#isFull = false;
    this.#changed();
  }

  async #send(text: string): Promise<void> {
    for (let attempt = 0;; attempt++) {
      const error = await this.#attempt(text);
      if (error === undefined) return;
      if (attempt >= this.#rules.retries || !this.#opening?.isOpen) {
        this.#counts.failed++;
        this.#fail(error);
        return;
      }
      await sleep(this.#rules.retryPause, this.#opening.signal);
      this.#counts.retried++;
    }
  }

  /** Past the queue: what cannot wait is tried once, and by few at a time. */
  async #sendDirectly(text: string): Promise<void> {
    if (!this.#mayWork || this.#directSends >= MOST_DIRECT_SENDS) {
      return this.#drop(new Error("too many messages wait"));
    }
    this.#directSends++;
    await Promise.resolve();
    const error = await this.#attempt(text);
    this.#directSends--;
    if (error !== undefined) this.#drop(error);
    this.#changed();
  }

  async #attempt(text: string): Promise<Error | undefined> {
    const opening = this.#opening;
    if (!opening?.isOpen) return new Error("it is not open");
    const sending = inRealTime(async () => await this.#channel.send(text))
      .then(() => undefined, (thrown) => asError(thrown, "send"));
    const isOver = await within(LONGEST_SEND, sending, opening.signal);
    const error = isOver ? await sending : new Error("sending did not end");
    if (error === undefined) this.#succeed();
    return error;
  }

  #succeed(): void {
    this.#counts.sent++;
    if (!this.#isFailing) return;
    this.#isFailing = false;
    LOG.info("Channel {channel} of broadcast {broadcast} works again", this.#names);
  }

  #fail(error: Error): void {
    if (this.#isFailing) return;
    this.#isFailing = true;
    LOG.warn("Channel {channel} of broadcast {broadcast} fails, messages are lost: {error}", {
      ...this.#names,
      error,
    });
  }

  #drop(error: Error): void {
    this.#counts.dropped++;
    if (this.#isFull) return;
    this.#isFull = true;
    LOG.warn("Channel {channel} of broadcast {broadcast} drops messages: {error}", {
      ...this.#names,
      error,
    });
  }

  #changed(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }

  get #names(): { readonly broadcast: string; readonly channel: string } {
    return { broadcast: this.#broadcast, channel: this.#channel.name };
  }
}

/** How long a channel may take for one text before it is given up, in milliseconds. */
const LONGEST_SEND = 10_000;
/** A channel may take a connection for each, of those that its service has. */
const MOST_DIRECT_SENDS = 16;
const LOG = logOf("broadcast");
