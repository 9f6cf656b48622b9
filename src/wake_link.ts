import type { Channel } from "./channel.ts";
import { ChannelOpening } from "./channel_opening.ts";
import { after, inRealTime, type Timer, uniqueId } from "./clock.ts";
import { logOf } from "./log.ts";
import { asError } from "./thrown.ts";
import { readWakeMessage, type WakeMessage, writeWakeMessage } from "./wake_message.ts";

/** Who is woken by other processes. */
export interface WakeListener {
  /** Messages of a queue were published. */
  wake(message: WakeMessage): void;
  /** Wakes may have been missed. */
  wakeAll(): void;
}

/**
 * Tells other processes, after a commit, that a queue has messages: at once, and at most once in 10 ms for
 * each queue. As best it can; whoever is not told finds them by polling.
 */
export class WakeLink {
  readonly #channel: Channel;
  readonly #listener: WakeListener;
  readonly #opening: ChannelOpening;
  /** Own wakes come back, and have been heard before. */
  readonly #self = uniqueId();
  /** What was told less than 10 ms ago, by its text. */
  readonly #told = new Map<string, { timer: Timer; again: boolean }>();
  readonly #sending = new Set<Promise<void>>();
  #isFailing = false;

  constructor(channel: Channel, listener: WakeListener) {
    this.#channel = channel;
    this.#listener = listener;
    this.#opening = new ChannelOpening("A broker's wakes", channel, {
      receive: (text) => this.#receive(text),
      missed: () => listener.wakeAll(),
    });
  }

  /**
   * Opens its channel.
   *
   * @throws {DeclarationError} if it can never be opened
   * @throws {DriverError} `unusable` if its database cannot serve it, as behind a pooler
   */
  async open(): Promise<void> {
    await this.#opening.open();
  }

  /** Tells the others. Never throws. */
  tell(message: WakeMessage): void {
    if (!this.#opening.isOpen) return;
    const text = writeWakeMessage({ ...message, from: this.#self });
    const told = this.#told.get(text);
    if (told === undefined) this.#tellNow(text);
    else told.again = true;
  }

  /** Tells what is still to be told, and closes the channel. */
  async close(): Promise<void> {
    for (const [text, { timer, again }] of this.#told) {
      timer.cancel();
      if (again) this.#send(text);
    }
    this.#told.clear();
    await Promise.all(this.#sending);
    await this.#opening.close();
  }

  #tellNow(text: string): void {
    this.#send(text);
    const timer = after(BETWEEN, () => {
      const { again } = this.#told.get(text)!;
      this.#told.delete(text);
      if (again) this.#tellNow(text);
    });
    this.#told.set(text, { timer, again: false });
  }

  #send(text: string): void {
    const sending = this.#attempt(text).finally(() => void this.#sending.delete(sending));
    this.#sending.add(sending);
  }

  async #attempt(text: string): Promise<void> {
    const { name: channel } = this.#channel;
    try {
      await inRealTime(async () => await this.#channel.send(text));
      if (this.#isFailing) LOG.info("Wakes go over {channel} again", { channel });
      this.#isFailing = false;
    } catch (thrown) {
      const error = asError(thrown, "send");
      if (!this.#isFailing) LOG.warn(FAILING, { channel, error });
      this.#isFailing = true;
    }
  }

  #receive(text: string): void {
    const message = readWakeMessage(text);
    if (message === undefined || message.from === this.#self) return;
    this.#listener.wake(message);
  }
}

/** In milliseconds. */
const BETWEEN = 10;
const FAILING = "Wakes do not go over {channel}, other processes find messages by polling: {error}";
const LOG = logOf("channel");
