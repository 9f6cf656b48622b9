/** An entity as it is. */
export interface EntityState<State> {
  /** Which one it is. */
  readonly entity: string;
  /** How often it has been written; what `expectedVersion` is compared with. */
  readonly version: number;
  /** The seq of the event with which it was written last. */
  readonly seq: number;
  /** Its state. */
  readonly state: State;
}

/** A scope as it is at one moment. */
export interface Snapshot<State> {
  /** The seq of its last event: follow from here. */
  readonly seq: number;
  /** Every entity that is not deleted, by name. */
  readonly entities: readonly EntityState<State>[];
}
