import type { Broker } from "../broker.ts";
import type { Channel } from "../channel.ts";
import { DeclarationError } from "../errors.ts";
import { NotifyChannel, type Notifying } from "../notify_channel.ts";
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
  "tables" | "subscriptions" | "lease" | "pollInterval" | "listenNotify" | "wake" | "driver"
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
  return new NotifyChannel(() => poolOf(broker), channel);
}

function poolOf(broker: NotifyingBroker): Notifying {
  const { name } = broker.driver;
  if (name !== "Postgres") {
    throw new DeclarationError(
      `Cannot notify through a broker of ${name}: give one of Postgres, or use redis(url)`,
    );
  }
  const running = runningBrokers.get(broker);
  if (running !== undefined) return running.pool;
  throw new DeclarationError(
    "Cannot notify through a broker that is not open: give the app withBroker(broker), or " +
      "connect() it, before the channel is opened",
  );
}
