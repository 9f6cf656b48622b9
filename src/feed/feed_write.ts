/** An event, and the state of the entity that it is about. */
export interface FeedWrite<Event = unknown, State = unknown> {
  /** Whose it is. */
  readonly tenant: string;
  /** What the event belongs to, and is numbered in. It belongs to the tenant that has written to it first. */
  readonly scope: string;
  /** What has happened; it must have a JSON form. */
  readonly event: Event;
  /** The event's id; one is made unless given. A second write of an id writes nothing. */
  readonly id?: string;
  /** The entity that the event is about. */
  readonly entity?: string;
  /** The state that the entity has from now on; `null` deletes it. Not given, its state stays as it is. */
  readonly state?: State | null;
  /** The version that the entity must have: 0 if it must never have been written. */
  readonly expectedVersion?: number;
}

/** What a write gives back. */
export interface FeedWritten {
  /** The event's number in its scope. */
  readonly seq: number;
  /** The event's id. */
  readonly id: string;
  /** The version of the entity, if its state was written. */
  readonly version?: number;
  /** Whether anything was written; false if there is an event with the id already. */
  readonly inserted: boolean;
}
