import type { Channel, ChannelListener } from "../channel.ts";

/** A channel that does what a test tells it, and reaches those who have it open. */
export class ChannelForTest implements Channel {
  readonly name: string = "test";
  readonly limit: number | undefined;
  /** What was sent, in order. */
  readonly sent: string[] = [];
  readonly listeners: Set<ChannelListener> = new Set();
  opened = 0;
  closed = 0;
  /** What happens at each opening, before it is open. */
  whenOpening: () => void | Promise<void> = () => {};
  /** What happens at each sending, before it arrives. */
  whenSending: (text: string) => void | Promise<void> = () => {};

  constructor(limit?: number) {
    this.limit = limit;
  }

  /** The messages that were sent. */
  get messages(): unknown[] {
    return this.sent.map((text) => JSON.parse(text).message);
  }

  async open(listener: ChannelListener): Promise<void> {
    this.opened++;
    await this.whenOpening();
    this.listeners.add(listener);
  }

  async send(text: string): Promise<void> {
    await this.whenSending(text);
    this.sent.push(text);
    this.arrive(text);
  }

  close(listener: ChannelListener): Promise<void> {
    this.closed++;
    this.listeners.delete(listener);
    return Promise.resolve();
  }

  /** Lets a text arrive, from anywhere. */
  arrive(text: string): void {
    for (const listener of this.listeners) listener.receive(text);
  }

  /** Tells of a connection that was lost and is there again. */
  reconnect(): void {
    for (const listener of this.listeners) listener.missed();
  }
}
