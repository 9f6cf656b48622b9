import type { Channel, ChannelListener } from "../channel.ts";
import { logOf } from "../log.ts";
import { asError } from "../thrown.ts";

/**
 * A channel within this process. All who have the same channel object open, or one of the same name,
 * reach each other: it may be given to several broadcasts and brokers.
 *
 * @param name by which separately made ones are one channel; absent, it is one by itself
 */
export function inProcess(name?: string): Channel {
  return new InProcessChannel(name);
}

class InProcessChannel implements Channel {
  readonly name: string;
  readonly #key: unknown;
  readonly #own = new Set<ChannelListener>();

  constructor(name: string | undefined) {
    this.name = name === undefined ? "in process" : `in process ${name}`;
    this.#key = name ?? this;
  }

  open(listener: ChannelListener): Promise<void> {
    this.#own.add(listener);
    let all = listeners.get(this.#key);
    if (all === undefined) listeners.set(this.#key, all = new Set());
    all.add(listener);
    return Promise.resolve();
  }

  send(text: string): Promise<void> {
    for (const listener of [...listeners.get(this.#key) ?? []]) this.#tell(listener, text);
    return Promise.resolve();
  }

  close(listener?: ChannelListener): Promise<void> {
    const leaving = listener === undefined ? [...this.#own] : [listener];
    const all = listeners.get(this.#key);
    for (const each of leaving) {
      this.#own.delete(each);
      all?.delete(each);
    }
    if (all?.size === 0) listeners.delete(this.#key);
    return Promise.resolve();
  }

  #tell(listener: ChannelListener, text: string): void {
    try {
      listener.receive(text);
    } catch (thrown) {
      const error = asError(thrown, "receive");
      LOG.error("A listener of channel {channel} failed: {error}", { channel: this.name, error });
    }
  }
}

/** Who listens, by the name of the channel, or the channel itself where it has none. */
const listeners = new Map<unknown, Set<ChannelListener>>();
const LOG = logOf("broadcast");
