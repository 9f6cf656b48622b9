import type { Channel, ChannelListener } from "../channel.ts";
import { inRealTime } from "../clock.ts";
import { ClosedError, DeclarationError } from "../errors.ts";
import { loadIoredis, loadRedis, type RedisModule } from "./redis_client.ts";
import { RedisConnection } from "./redis_connection.ts";

/** Where a Redis is. */
export interface RedisAddress {
  /** `redis://` or, with TLS, `rediss://`, with user and password where there are. */
  readonly url: string;
  /** The pub/sub channel; default `"holdfast"`. */
  readonly channel?: string;
}

/** What tests replace. */
export interface RedisChannelParts {
  readonly load: () => Promise<RedisModule>;
  /** In milliseconds. */
  readonly probeInterval: number;
}

/** Texts over the pub/sub of a Redis: a connection that sends, and one that listens. */
export class RedisChannel implements Channel {
  readonly name = "redis";
  readonly #url: string;
  readonly #channel: string;
  readonly #parts: RedisChannelParts;
  #connections: Connections | undefined;

  constructor(address: RedisAddress, parts: Partial<RedisChannelParts> = {}) {
    const { url, channel = "holdfast" } = address;
    checkUrl(url);
    if (typeof channel !== "string" || channel === "") {
      throw new DeclarationError(
        "Cannot use an empty text as channel of a Redis: give a name, or leave it out",
      );
    }
    this.#url = url;
    this.#channel = channel;
    this.#parts = { load: loadIoredis, probeInterval: 15_000, ...parts };
  }

  async open(listener: ChannelListener): Promise<void> {
    if (this.#connections !== undefined) {
      throw new DeclarationError(
        "Cannot open the channel redis twice: make one for each that uses it, redis(url)",
      );
    }
    const opening = new AbortController();
    const connections: Connections = this.#connections = { opening };
    try {
      await inRealTime(() => this.#connect(connections, listener));
    } catch (error) {
      await this.#end(connections);
      throw error;
    }
  }

  async send(text: string): Promise<void> {
    const sender = this.#connections?.sender;
    if (sender === undefined) throw new ClosedError("Cannot send through redis: it is not open");
    await inRealTime(() => sender.client.publish(this.#channel, text));
  }

  async close(): Promise<void> {
    const connections = this.#connections;
    if (connections !== undefined) await inRealTime(() => this.#end(connections));
  }

  async #connect(connections: Connections, listener: ChannelListener): Promise<void> {
    const module = await loadRedis(this.#parts.load);
    connections.opening.signal.throwIfAborted();
    const { probeInterval } = this.#parts;
    const sender = new RedisConnection(module, this.#url, { purpose: "sends", probeInterval });
    const receiver = new RedisConnection(module, this.#url, {
      purpose: "listens",
      probeInterval,
      prepare: (client) => client.subscribe(this.#channel),
      restored: () => listener.missed(),
    });
    receiver.client.on("message", (_, text) => listener.receive(text));
    connections.receiver = receiver;
    connections.sender = sender;
    await Promise.all([sender.open(), receiver.open()]);
  }

  async #end(connections: Connections): Promise<void> {
    if (this.#connections === connections) this.#connections = undefined;
    const { opening, sender, receiver } = connections;
    opening.abort(new ClosedError("The channel redis was closed while it opened"));
    await Promise.all([sender?.close(), receiver?.close()]);
  }
}

interface Connections {
  /** Aborts when they are no longer wanted. */
  readonly opening: AbortController;
  sender?: RedisConnection;
  receiver?: RedisConnection;
}

function checkUrl(url: unknown): void {
  const protocol = typeof url === "string" ? URL.parse(url)?.protocol : undefined;
  if (protocol === "redis:" || protocol === "rediss:") return;
  throw new DeclarationError(
    "Cannot reach a Redis at the URL given: give one such as redis://user:secret@host:6379",
  );
}
