/**
 * Tells other processes, and this one, what was committed: in the process, over a webhook, the pub/sub of
 * a Redis or NOTIFY of Postgres. As best it can: a message may be lost, so whoever relies on it also
 * polls.
 *
 * ```ts
 * import { App } from "@holdfast/inbox";
 * import { Broadcast, inProcess } from "@holdfast/inbox/broadcast";
 *
 * const broadcast = new Broadcast({ channels: [inProcess()] });
 * broadcast.subscribe<{ id: number }>("orders", ({ message }) => {
 *   console.log(message === undefined ? "look for orders" : `order ${message.id}`);
 * });
 * await using app = await new App({ name: "shop" }).withComponent(broadcast).start();
 * broadcast.send("orders", { id: 1 });
 * ```
 *
 * @module
 */

export { Broadcast } from "./broadcast.ts";
export type { SendOptions } from "./broadcast.ts";
export type { BroadcastMessage } from "./broadcast_message.ts";
export type { BroadcastOptions } from "./broadcast_options.ts";
export type {
  BroadcastStats,
  ChannelState,
  ChannelStats,
  MessageCounts,
} from "./broadcast_stats.ts";
export type { Callback } from "./callbacks.ts";
export { inProcess } from "./in_process.ts";
export { MissingPackageError } from "../missing_package_error.ts";
export { none } from "./none.ts";
export { postgresNotify } from "./postgres_notify.ts";
export type { NotifyingBroker, PostgresNotifyOptions } from "./postgres_notify.ts";
export { redis } from "./redis.ts";
export type { RedisAddress } from "./redis_channel.ts";
export type { Unsubscribe } from "./unsubscribe.ts";
export { webhook } from "./webhook.ts";
export type { WebhookOptions } from "./webhook.ts";
export type { Channel, ChannelListener } from "../channel.ts";
