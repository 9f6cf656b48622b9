import type { ScopeKey, StoredEvent } from "../driver/dialect.ts";
import type { FeedEvent } from "./feed_event.ts";
import type { FeedMessage } from "./feed_message.ts";

/** A scope as a follower reads it. */
export interface EventSource<Event> extends ScopeKey {
  /** In milliseconds. */
  readonly pollInterval: number;
  /** Whether events are told of. */
  readonly isBroadcast: boolean;
  /** The number of the scope's last event. @throws {TenantError} if it is another tenant's */
  head(): Promise<number>;
  /** Events after a number, in order, so many at the most as one poll gives. */
  poll(after: number): Promise<readonly StoredEvent[]>;
  /** Whether the poll has given all there was. */
  isLast(events: readonly StoredEvent[]): boolean;
  /** Calls back for each event that is told, and with nothing where some may have been missed. */
  listen(callback: (message: FeedMessage | undefined) => void): () => void;
  /** The event as it is handed on. */
  decode(stored: FeedMessage, source: FeedEvent["source"]): Promise<FeedEvent<Event>>;
}
