import { AFTER_DISCONNECT, backoff } from "../backoff.ts";
import type { Channel, ChannelListener } from "../channel.ts";
import { inRealTime, sleep } from "../clock.ts";
import { DeclarationError } from "../errors.ts";
import { logOf } from "../log.ts";
import { asError } from "../thrown.ts";
import { within } from "../within.ts";
import { MissingPackageError } from "./missing_package_error.ts";

/** Opens a channel, and goes on trying if it cannot be opened at first. */
export class ChannelOpening {
  readonly #broadcast: string;
  readonly #channel: Channel;
  readonly #listener: ChannelListener;
  readonly #end = new AbortController();
  #attempt: Promise<Error | undefined> | undefined;
  #isOpen = false;

  /** @param broadcast the name, for the log */
  constructor(broadcast: string, channel: Channel, listener: ChannelListener) {
    this.#broadcast = broadcast;
    this.#channel = channel;
    this.#listener = listener;
  }

  /** Whether texts may be sent. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Aborts when it is being closed. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /**
   * Resolves when the first attempt has ended, or takes too long; from then on it is opened in the
   * background.
   *
   * @returns false if the package that it needs is absent: it is not tried again then
   * @throws {DeclarationError} if it can never be opened
   */
  async open(): Promise<boolean> {
    const first = this.#tryOnce();
    if (!await within(PATIENCE, first, this.#end.signal)) {
      void this.#openLater(first);
      return true;
    }
    const error = await first;
    if (error instanceof MissingPackageError) {
      LOG.warn("Broadcast {broadcast} goes without its channel {channel}: {error}", {
        ...this.#names,
        error,
      });
      return false;
    }
    if (error instanceof DeclarationError) throw error;
    if (error !== undefined) void this.#openLater(first);
    return true;
  }

  /** Closes the channel, also one that is just being opened. */
  async close(): Promise<void> {
    this.#end.abort();
    const wasOpen = this.#isOpen;
    this.#isOpen = false;
    if (!wasOpen && this.#attempt === undefined) return;
    await this.#close();
    if (this.#attempt !== undefined) await within(PATIENCE, this.#attempt);
  }

  #tryOnce(): Promise<Error | undefined> {
    const attempt = this.#openChannel().then(
      () => undefined,
      (thrown) => asError(thrown, "open"),
    );
    return this.#attempt = attempt.finally(() => this.#attempt = undefined);
  }

  async #openChannel(): Promise<void> {
    await inRealTime(async () => await this.#channel.open(this.#listener));
    if (this.#end.signal.aborted) await this.#close();
    else this.#isOpen = true;
  }

  #close(): Promise<void> {
    return inRealTime(async () => await this.#channel.close(this.#listener));
  }

  /** Who has not listened so far may have missed everything. */
  async #openLater(first: Promise<Error | undefined>): Promise<void> {
    const { signal } = this.#end;
    let error = await first;
    for (let attempt = 1; error !== undefined && !signal.aborted; attempt++) {
      if (attempt === 1) LOG.warn(WILL_OPEN, { ...this.#names, error });
      if (error instanceof DeclarationError) {
        LOG.error(NEVER_OPENS, { ...this.#names, error });
        return;
      }
      await sleep(backoff(attempt, AFTER_DISCONNECT), signal);
      if (!signal.aborted) error = await this.#tryOnce();
    }
    if (signal.aborted) return;
    LOG.info("Channel {channel} of broadcast {broadcast} is open now", this.#names);
    this.#listener.missed();
  }

  get #names(): { readonly broadcast: string; readonly channel: string } {
    return { broadcast: this.#broadcast, channel: this.#channel.name };
  }
}

/** How long a start waits for a channel, in milliseconds. */
const PATIENCE = 5_000;
const WILL_OPEN =
  "Channel {channel} of broadcast {broadcast} could not be opened and is tried again: {error}";
const NEVER_OPENS =
  "Channel {channel} of broadcast {broadcast} cannot be opened and is not tried again: {error}";
const LOG = logOf("broadcast");
