import type { FeedBroadcast } from "../../src/feed/mod.ts";

/** Tells in this process, at once, what it is not told to lose. */
export class LocalBroadcast implements FeedBroadcast {
  /** What was sent, in order. */
  readonly sent: { readonly topic: string; readonly message: unknown }[] = [];
  /** Whether what is sent arrives nowhere. */
  isOff = false;
  readonly #subscribers = new Map<string, Set<(received: { readonly message: unknown }) => void>>();
  readonly #missed = new Set<() => void>();

  send(topic: string, message: unknown): void {
    this.sent.push({ topic, message });
    if (!this.isOff) this.arrive(topic, message);
  }

  /** What arrives, whoever has sent it. */
  arrive(topic: string, message: unknown): void {
    for (const callback of this.#subscribers.get(topic) ?? []) callback({ message });
  }

  /** Tells that something was missed. */
  miss(): void {
    for (const callback of this.#missed) callback();
  }

  subscribe(
    topic: string,
    callback: (received: { readonly message: unknown }) => void,
  ): () => void {
    const own = this.#subscribers.get(topic) ?? new Set();
    this.#subscribers.set(topic, own.add(callback));
    return (): void => void own.delete(callback);
  }

  onMissed(callback: () => void): () => void {
    this.#missed.add(callback);
    return (): void => void this.#missed.delete(callback);
  }
}
