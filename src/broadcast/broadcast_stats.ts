/** What has become of messages, each counted once for each channel. */
export interface MessageCounts {
  /** Channels have taken them. */
  readonly sent: number;
  /** Further attempts at sending. */
  readonly retried: number;
  /** Given up after the last attempt, or because the channel was not open. */
  readonly failed: number;
  /** Not sent because the queue was full and the one direct attempt failed, or it was shut down. */
  readonly dropped: number;
  /** Too long for a channel, and sent without the message. */
  readonly truncated: number;
  /** Waiting to be sent. */
  readonly queued: number;
  /** Arrived, and handed to the topic's subscribers, if it has any. */
  readonly received: number;
  /** Arrived before, by this or another channel, and handed to nobody. */
  readonly duplicates: number;
  /** Arrived texts that are none of a broadcast's. */
  readonly ignored: number;
}

/** The state of a channel: `opening` until it could be opened, `skipped` if its package is absent. */
export type ChannelState = "new" | "opening" | "open" | "skipped" | "closed";

/** The messages of one channel. */
export interface ChannelStats extends MessageCounts {
  /** The channel's name. */
  readonly channel: string;
  /** Whether it is open. A channel that has lost its connection is open. */
  readonly state: ChannelState;
}

/** The messages of a broadcast since it was made, over all channels and by channel. */
export interface BroadcastStats extends MessageCounts {
  /** Callbacks that threw or rejected. */
  readonly subscriberErrors: number;
  /** In the order in which the channels were given. */
  readonly channels: readonly ChannelStats[];
}

/** Counts of messages while they change. */
export type RunningCounts = { -readonly [K in keyof MessageCounts]: number };

/** Nothing yet. */
export function noCounts(): RunningCounts {
  return {
    sent: 0,
    retried: 0,
    failed: 0,
    dropped: 0,
    truncated: 0,
    queued: 0,
    received: 0,
    duplicates: 0,
    ignored: 0,
  };
}

/** The counts of all channels together. */
export function sumOfCounts(all: readonly MessageCounts[]): MessageCounts {
  const sum = noCounts();
  for (const counts of all) {
    for (const name of Object.keys(sum) as (keyof MessageCounts)[]) sum[name] += counts[name];
  }
  return sum;
}
