import { AFTER_DISCONNECT, backoff } from "./backoff.ts";
import type { Channel, ChannelListener } from "./channel.ts";
import { inRealTime, sleep } from "./clock.ts";
import { DeclarationError, DriverError } from "./errors.ts";
import { logOf } from "./log.ts";
import { asError } from "./thrown.ts";
import { within } from "./within.ts";
import { MissingPackageError } from "./missing_package_error.ts";

/** Opens a channel, and goes on trying if it cannot be opened at first. */
export class ChannelOpening {
  readonly #owner: string;
  readonly #channel: Channel;
  readonly #listener: ChannelListener;
  readonly #end = new AbortController();
  #attempt: Promise<Error | undefined> | undefined;
  #isOpen = false;

  /** @param owner who uses the channel, for the log: `Broadcast x` */
  constructor(owner: string, channel: Channel, listener: ChannelListener) {
    this.#owner = owner;
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
   * @throws {DriverError} `unusable` if its database cannot serve it, as behind a pooler
   */
  async open(): Promise<boolean> {
    const first = this.#tryOnce();
    if (!await within(PATIENCE, first, this.#end.signal)) {
      void this.#openLater(first);
      return true;
    }
    const error = await first;
    if (error instanceof MissingPackageError) {
      LOG.warn("{owner} goes without its channel {channel}: {error}", {
        ...this.#names,
        error,
      });
      return false;
    }
    if (isForGood(error)) throw error;
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
      if (isForGood(error)) {
        LOG.error(NEVER_OPENS, { ...this.#names, error });
        return;
      }
      await sleep(backoff(attempt, AFTER_DISCONNECT), signal);
      if (!signal.aborted) error = await this.#tryOnce();
    }
    if (signal.aborted) return;
    LOG.info("{owner}: channel {channel} is open now", this.#names);
    this.#listener.missed();
  }

  get #names(): { readonly owner: string; readonly channel: string } {
    return { owner: this.#owner, channel: this.#channel.name };
  }
}

/** Whether to try again is in vain. */
function isForGood(error: Error | undefined): boolean {
  return error instanceof DeclarationError ||
    error instanceof DriverError && error.kind === "unusable";
}

/** How long a start waits for a channel, in milliseconds. */
const PATIENCE = 5_000;
const WILL_OPEN = "{owner}: channel {channel} could not be opened and is tried again: {error}";
const NEVER_OPENS = "{owner}: channel {channel} cannot be opened and is not tried again: {error}";
const LOG = logOf("channel");
