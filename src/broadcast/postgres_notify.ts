import type { Broker } from "../broker.ts";
import type { Channel, ChannelListener } from "../channel.ts";
import type { Listening } from "../driver/listen.ts";
import { ClosedError, DeclarationError } from "../errors.ts";
import { logOf } from "../log.ts";
import type { Pool } from "../pool.ts";
import { refuseUnknownOptions } from "../refuse_unknown_options.ts";
import { runningBrokers } from "../running_broker.ts";

/** Over what notifications go. */
export interface PostgresNotifyOptions {
  /** The channel of LISTEN and NOTIFY, 63 bytes at the most; default `"holdfast"`. */
  readonly channel?: string;
}

/** A broker of which a channel is made, as much of it as is looked at. */
export type NotifyingBroker = Pick<
  Broker,
  "tables" | "subscriptions" | "lease" | "pollInterval" | "driver"
>;

/**
 * A channel over LISTEN and NOTIFY of a broker's database, which must be Postgres. It is open while the
 * broker is: in an app, both need only be part of it. A text has 7,999 bytes at the most.
 *
 * @throws {DeclarationError} if the channel's name cannot be one, or an option is unknown
 */
export function postgresNotify(
  broker: NotifyingBroker,
  options: PostgresNotifyOptions = {},
): Channel {
  refuseUnknownOptions("Cannot make a channel over NOTIFY", options, ["channel"]);
  const { channel = "holdfast" } = options;
  const isName = typeof channel === "string" && channel !== "" && !channel.includes("\0") &&
    new TextEncoder().encode(channel).length <= 63;
  if (!isName) {
    throw new DeclarationError(
      `Cannot notify over the channel ${JSON.stringify(channel)}: give a name of 1 to 63 bytes`,
    );
  }
  return new PostgresNotifyChannel(broker, channel);
}

class PostgresNotifyChannel implements Channel {
  readonly name = "postgres notify";
  /** A payload must be shorter than 8,000 bytes (PostgreSQL, NOTIFY). */
  readonly limit = 7_999;
  readonly #broker: NotifyingBroker;
  readonly #channel: string;
  #pool: Notifying | undefined;
  #listening: Promise<Listening> | undefined;

  constructor(broker: NotifyingBroker, channel: string) {
    this.#broker = broker;
    this.#channel = channel;
  }

  async open(listener: ChannelListener): Promise<void> {
    if (this.#listening !== undefined) {
      throw new DeclarationError(
        "Cannot open the channel postgres notify twice: make one for each that uses it, " +
          "postgresNotify(broker)",
      );
    }
    const pool = this.#pool = this.#openPool();
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

  #openPool(): Notifying {
    const { name } = this.#broker.driver;
    if (name !== "Postgres") {
      throw new DeclarationError(
        `Cannot notify through a broker of ${name}: give one of Postgres, or use redis(url)`,
      );
    }
    const running = runningBrokers.get(this.#broker);
    if (running !== undefined) return running.pool;
    throw new DeclarationError(
      "Cannot notify through a broker that is not open: give the app withBroker(broker), or " +
        "connect() it, before the channel is opened",
    );
  }

  #with(error?: Error): { readonly channel: string; readonly error?: Error } {
    return { channel: this.#channel, ...(error === undefined ? {} : { error }) };
  }
}

type Notifying = Pick<Pool, "listen" | "notify">;

const LOG = logOf("broadcast");
