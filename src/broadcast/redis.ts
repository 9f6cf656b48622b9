import type { Channel } from "../channel.ts";
import { refuseUnknownOptions } from "../refuse_unknown_options.ts";
import { type RedisAddress, RedisChannel } from "./redis_channel.ts";

/**
 * A channel over the pub/sub of a Redis, through `npm:ioredis`, which is loaded when it is opened.
 *
 * It has two connections. While they are lost, sending fails at once; they are made again with pauses that
 * grow, 5 s at the most, and a connection whose other end does not answer within 17 s counts as lost.
 * One object may be opened by one broadcast or broker.
 *
 * @throws {DeclarationError} if the URL is not one of `redis:` or `rediss:`, or an option is unknown
 */
export function redis(address: string | RedisAddress): Channel {
  if (typeof address !== "object") return new RedisChannel({ url: address });
  refuseUnknownOptions("Cannot make a channel over Redis", address, ["url", "channel"]);
  return new RedisChannel({ ...address });
}
