/**
 * A message as its subscribers get it.
 *
 * @typeParam T the message, which is taken on trust
 */
export interface BroadcastMessage<T = unknown> {
  /** By which it is told apart from others of its topic. */
  readonly id: string;
  /** What it was sent to. */
  readonly topic: string;
  /** When it was sent, in milliseconds since 1970, by the sender's clock. */
  readonly sentAt: number;
  /** What was sent; `undefined` if the channel could not carry it: read it where it is stored. */
  readonly message: T | undefined;
  /** Whether the channel could not carry the message. */
  readonly truncated: boolean;
}
