import type { Broker } from "../broker.ts";
import type { FeedTables } from "../driver/dialect.ts";
import type { Duration } from "../duration.ts";
import { DeclarationError } from "../errors.ts";
import { refuseUnknownOptions } from "../refuse_unknown_options.ts";
import type { StandardSchema } from "../standard_schema.ts";
import { toMilliseconds } from "../duration.ts";
import type { FeedBroadcast } from "./feed_broadcast.ts";

/** How a feed is declared. */
export interface FeedOptions<Event, State> {
  /** The database. The feed works while its app runs, or while it is connected by itself. */
  // deno-lint-ignore no-explicit-any -- whatever its clients call a transaction
  readonly broker: Broker<any, any, any>;
  /** Whether tables that are missing are created at first use; default false. */
  readonly createTables?: boolean;
  /** The names of the tables: `worlds_scopes`, `worlds_events`, `worlds_entities` unless given. */
  readonly tables?: Partial<FeedTables>;
  /** Checks events when they are written and when they are read; it must give back what it was given. */
  readonly event?: StandardSchema<Event, Event>;
  /** Checks states when they are written and when they are read. */
  readonly state?: StandardSchema<State, State>;
  /** Tells followers of events after they are committed; without it they poll. */
  readonly broadcast?: FeedBroadcast;
  /** How long a follower waits for events that nobody tells of; default 3 s. */
  readonly pollInterval?: Duration;
  /** How many events one poll reads at the most, 1 to 10,000; default 500. */
  readonly pollLimit?: number;
}

/** Options that have been checked. */
export interface CheckedFeedOptions {
  /** In milliseconds. */
  readonly pollInterval: number;
  readonly pollLimit: number;
}

/**
 * The limits of a feed.
 *
 * @throws {DeclarationError} if there is no such option, or no broker
 * @throws {RangeError} if a number is none that can be meant
 */
export function checkFeedOptions(
  feed: string,
  options: FeedOptions<never, never>,
): CheckedFeedOptions {
  const what = `Cannot declare feed ${JSON.stringify(feed)}`;
  if (typeof feed !== "string" || !/^[A-Za-z_]\w*$/.test(feed)) {
    throw new DeclarationError(`${what}: give it a name of letters, digits and _`);
  }
  refuseUnknownOptions(what, options, OPTIONS);
  if (options?.broker?.driver === undefined) {
    throw new DeclarationError(`${what} without a broker: give { broker: new Broker(…) }`);
  }
  const { pollInterval = 3_000, pollLimit = 500 } = options;
  const interval = toMilliseconds(pollInterval, `the poll interval of feed "${feed}"`);
  if (interval < 1) {
    throw new RangeError(`${what} with a poll interval of ${interval} ms: give 1 ms or more`);
  }
  if (!Number.isInteger(pollLimit) || pollLimit < 1 || pollLimit > 10_000) {
    throw new RangeError(`${what} with a poll limit of ${pollLimit}: give 1 to 10,000 events`);
  }
  return { pollInterval: interval, pollLimit };
}

const OPTIONS: readonly (keyof FeedOptions<never, never>)[] = [
  "broker",
  "createTables",
  "tables",
  "event",
  "state",
  "broadcast",
  "pollInterval",
  "pollLimit",
];
