import type { SqlRow } from "./driver.ts";
import type { Statement } from "./statement.ts";

/** The three tables of a feed, each `table` or `schema.table`: letters, digits and `_`. */
export interface FeedTables {
  /** One row for each scope: whose it is, and the number of its last event. */
  readonly scopes: string;
  /** Events, which are only ever added, numbered in each scope from 1. */
  readonly events: string;
  /** The present state of each entity of a scope. */
  readonly entities: string;
}

/** A scope and whose it is. */
export interface ScopeKey {
  /** Whose it is; 1 to 190 characters. */
  readonly tenant: string;
  /** Its name, which no other tenant's scope has; 1 to 190 characters. */
  readonly scope: string;
}

/** An entity of a scope. */
export interface EntityKey extends ScopeKey {
  /** Its name, which no other entity of the scope has; 1 to 190 characters. */
  readonly entity: string;
}

/** An entity's state as it is written. */
export interface NewState extends EntityKey {
  /** The number of the event that tells of it. */
  readonly seq: number;
  /** JSON text; `null` for an entity that is deleted. */
  readonly state: string | null;
}

/** An event as it is written. */
export interface NewEvent extends ScopeKey {
  /** Its number in its scope, from 1. */
  readonly seq: number;
  /** What no other event has. */
  readonly id: string;
  /** The entity that it is about, if it names one. */
  readonly entity: string | null;
  /** The version of the entity since, if its state was written with the event. */
  readonly version: number | null;
  /** JSON text. */
  readonly event: string;
  /** In milliseconds since 1970. */
  readonly createdAt: number;
}

/** An event as it stands in its table. */
export type StoredEvent = NewEvent;

/** Events of a scope from a number on. */
export interface EventsAfter extends ScopeKey {
  /** The number of the last event that is not asked for. */
  readonly after: number;
}

/** An UPDATE that adds 1 to a number of one row, and what reads the number where it returns nothing. */
export interface CountingUpdate<Values> {
  /** Returns the number as `value` unless there is `read`. */
  readonly update: Statement<Values>;
  /** Reads the number as `value`, in the same transaction; no row if there is none. */
  readonly read?: Statement<Values>;
}

/** How the statement that polls would be carried out. */
export interface PollPlan {
  /** The index by which events are found, without looking at others; `undefined` if there is none. */
  readonly index: string | undefined;
  /** The plan in the database's own words. */
  readonly text: string;
}

/** The statements of a feed. Those that write belong into one transaction. */
export interface FeedStatements {
  /** `CREATE TABLE` for the three tables, one statement each. */
  readonly ddl: Readonly<Record<keyof FeedTables, string>>;
  /** Reads nothing from a table, and fails where it or one of its columns is missing. */
  readonly probe: Readonly<Record<keyof FeedTables, Statement<void>>>;
  /** Takes the next number of a scope, and keeps other writers of it waiting until the transaction ends. */
  readonly takeSeq: CountingUpdate<ScopeKey>;
  /** Adds a scope without events, unless there is one of that name, whosever it is. */
  readonly addScope: Statement<ScopeKey>;
  /** Gives the number back that was taken in this transaction. */
  readonly giveBackSeq: Statement<ScopeKey>;
  /** Reads `tenant` and `seq` of a scope. */
  readonly readScope: Statement<Pick<ScopeKey, "scope">>;
  /** Reads `tenant`, `scope`, `seq` and `version` of the event with an id. */
  readonly findEvent: Statement<Pick<NewEvent, "id">>;
  /** Adds an event. */
  readonly insertEvent: Statement<NewEvent>;
  /** Reads the latest committed `version` of an entity; its scope's number must have been taken. */
  readonly readVersion: Statement<EntityKey>;
  /** Writes an entity's state and counts its version. */
  readonly updateEntity: CountingUpdate<NewState>;
  /** Adds an entity with version 1. */
  readonly insertEntity: Statement<NewState>;
  /** Reads `version`, `seq` and `state` of an entity. */
  readonly readEntity: Statement<EntityKey>;
  /**
   * Reads the number of a scope's last event as `scope_seq`, and with it `entity`, `version`, `seq` and
   * `state` of each entity that is not deleted, by one statement; `entity` is NULL where there is none.
   */
  readonly snapshot: Statement<ScopeKey>;
  /** Reads events in order, so many at the most. */
  poll(limit: number): Statement<EventsAfter>;
  /** An event as `poll` has read it. */
  readEvent(row: SqlRow): StoredEvent;
  /** Tells how `poll` would be carried out. */
  explain(limit: number): Statement<EventsAfter>;
  /** The plan that `explain` has told. */
  readPlan(rows: readonly SqlRow[]): PollPlan;
  /** Lets the planner avoid reading whole tables, until the transaction ends; absent where it needs no telling. */
  readonly preferIndexes?: Statement<void>;
}
