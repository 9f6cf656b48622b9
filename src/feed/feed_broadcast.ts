/** What a feed needs of a broadcast, such as one of `@holdfast/inbox/broadcast`: best effort is enough. */
export interface FeedBroadcast {
  /** Tells whoever has subscribed to a topic, in any process; returns at once, and never throws. */
  send(topic: string, message: unknown, options?: { readonly id?: string }): void;
  /** Calls back for each message of a topic; `message` is `undefined` where only its id has come. */
  subscribe(topic: string, callback: (received: { readonly message: unknown }) => void): () => void;
  /** Calls back when messages may have been missed. */
  onMissed(callback: () => void): () => void;
}
