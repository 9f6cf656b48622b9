import type { Channel, ChannelListener } from "./channel.ts";
import type { Listening } from "./driver/listen.ts";
import { ClosedError, DeclarationError } from "./errors.ts";
import { logOf } from "./log.ts";
import type { Pool } from "./pool.ts";

/** What notifies, and listens, in a database. */
export type Notifying = Pick<Pool, "listen" | "notify">;

/** A channel over LISTEN and NOTIFY of a database. */
export class NotifyChannel implements Channel {
  readonly name = "postgres notify";
  /** A payload must be shorter than 8,000 bytes (PostgreSQL, NOTIFY). */
  readonly limit = 7_999;
  readonly #findPool: () => Notifying;
  readonly #channel: string;
  #pool: Notifying | undefined;
  #listening: Promise<Listening> | undefined;

  /**
   * @param findPool is called when it is opened
   * @param channel the name after LISTEN
   */
  constructor(findPool: () => Notifying, channel: string) {
    this.#findPool = findPool;
    this.#channel = channel;
  }

  async open(listener: ChannelListener): Promise<void> {
    if (this.#listening !== undefined) {
      throw new DeclarationError(
        "Cannot open the channel postgres notify twice: make one for each that uses it, " +
          "postgresNotify(broker)",
      );
    }
    const pool = this.#pool = this.#findPool();
    const listening = this.#listening = pool.listen(this.#channel, {
      receive: (payload) => listener.receive(payload),
      lost: (error) => LOG.warn("Notifications of {channel} are lost: {error}", this.#with(error)),
      restored: () => {
        LOG.info("Notifications of {channel} are there again", this.#with());
        listener.missed();
      },
    });
    try {
      await listening;
    } catch (error) {
      if (this.#listening === listening) this.#forget();
      throw error;
    }
  }

  async send(text: string): Promise<void> {
    if (this.#pool === undefined) {
      throw new ClosedError("Cannot send through postgres notify: it is not open");
    }
    await this.#pool.notify(this.#channel, text);
  }

  async close(): Promise<void> {
    const listening = this.#listening;
    this.#forget();
    const opened = await listening?.catch(() => undefined);
    await opened?.close();
  }

  #forget(): void {
    this.#listening = undefined;
    this.#pool = undefined;
  }

  #with(error?: Error): { readonly channel: string; readonly error?: Error } {
    return { channel: this.#channel, ...(error === undefined ? {} : { error }) };
  }
}

const LOG = logOf("channel");
