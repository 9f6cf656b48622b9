/** An event of a scope. */
export interface FeedEvent<Event = unknown> {
  /** Whose it is. */
  readonly tenant: string;
  /** What it belongs to. */
  readonly scope: string;
  /** Its number in its scope, from 1, without gaps: the watermark of whoever has seen it. */
  readonly seq: number;
  /** Its id, which no other event of the feed has. */
  readonly id: string;
  /** What has happened. */
  readonly event: Event;
  /** The entity that it is about, if it names one. */
  readonly entity?: string;
  /** The version of that entity since, if its state was written with the event. */
  readonly version?: number;
  /** When it was written, by the clock of its writer: for people, and no order. */
  readonly createdAt: Date;
  /** By which way it came. */
  readonly source: "broadcast" | "poll";
}
