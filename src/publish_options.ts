import { toDelay } from "./delay.ts";
import type { Duration } from "./duration.ts";
import type { SqlValue } from "./driver/driver.ts";
import { columnNames } from "./driver/roles.ts";
import { DeclarationError, PayloadError } from "./errors.ts";
import { encodeHeaders, type Headers } from "./headers.ts";
import type { AnyQueue } from "./queue.ts";
import { refuseUnknownOptions } from "./refuse_unknown_options.ts";
import { storableText } from "./stored.ts";

/** A point in time: a `Date`, or a `Temporal.Instant` or `ZonedDateTime`. */
export type Instant = Date | { readonly epochMilliseconds: number };

/** What a column that plays no role can be published with. */
export type ColumnValue = string | number | bigint | boolean | Uint8Array | null;

/**
 * How a message is published.
 *
 * @typeParam Tx what the database's clients call a transaction
 */
export type PublishOptions<Tx = unknown> = PublishColumns & PublishTime & PublishIn<Tx>;

/** In which transaction a message is published. */
export interface PublishIn<Tx = unknown> {
  /**
   * The caller's own transaction: the row commits or rolls back with what the caller writes in it.
   * Nobody in this process is woken when it commits, save for one of `broker.transaction`. For any
   * client, `{ query(text, params) }` can stand for its transaction.
   */
  readonly tx?: Tx;
}

/** How many messages are published. Options are for all of them, save those that `each` gives. */
export type PublishManyOptions<Message = unknown, Tx = unknown> = PublishOptions<Tx> & {
  /** The options of one message, by the message and its place in the list. */
  readonly each?: (message: Message, index: number) => PublishColumns & PublishTime;
};

/** What is written beside the message. */
export interface PublishColumns {
  /** A whole number; smaller is claimed first. Needs the role `priority`; default 0. */
  readonly priority?: number | bigint;
  /** Messages of one key are handled in order within a subscription. Needs `partitionKey`. */
  readonly key?: string;
  /** If a row has this key already nothing is inserted. Needs the role `uniqueKey`. */
  readonly uniqueKey?: string;
  /** Text by name that goes with the message. Needs the role `headers`. */
  readonly headers?: Headers;
  /** The values of columns that play no role, by name. */
  readonly columns?: Readonly<Record<string, ColumnValue>>;
}

/** When the message is due: at once unless given. Needs the role `retryAfter`. */
export type PublishTime =
  | {
    /** How long after it is published, in milliseconds or by unit. */
    readonly delay?: Duration;
    /** Not beside `delay`. */
    readonly at?: undefined;
  }
  | {
    /** Not beside `at`. */
    readonly delay?: undefined;
    /** From when on. */
    readonly at?: Instant;
  };

/** The options of a publish, checked. */
export interface CheckedPublish {
  readonly priority: bigint;
  /** In milliseconds. */
  readonly delay: number;
  /** In milliseconds since 1970. */
  readonly at: number | undefined;
  readonly columns: Readonly<Record<string, SqlValue>>;
  readonly key: string | null;
  readonly uniqueKey: string | null;
  /** As JSON text. */
  readonly headers: string | null;
}

/**
 * The options in the form in which they are written.
 *
 * @throws {DeclarationError} if an option is unknown, or the table lacks the role that it needs
 * @throws {TypeError} if a value is not of its type
 * @throws {RangeError} if a number is out of range
 */
export function checkPublish(queue: AnyQueue, options: PublishOptions): CheckedPublish {
  const cannot = `Cannot publish to queue "${queue.name}"`;
  if (typeof options !== "object" || options === null) {
    throw new TypeError(`${cannot} with ${String(options)} as options: give an object or none`);
  }
  refuseUnknownOptions(cannot, options, OPTIONS);
  return {
    priority: checkPriority(queue, options.priority, cannot),
    ...checkTime(queue, options, cannot),
    key: checkText(queue, "partitionKey", options.key, cannot),
    uniqueKey: checkText(queue, "uniqueKey", options.uniqueKey, cannot),
    headers: checkHeaders(queue, options.headers, cannot),
    columns: checkColumns(queue, options.columns === undefined ? {} : options.columns, cannot),
  };
}

function checkPriority(
  { inbox }: AnyQueue,
  priority: number | bigint | undefined,
  cannot: string,
): bigint {
  if (priority === undefined) return 0n;
  if (inbox.description.priority === undefined) {
    throw new DeclarationError(
      `${cannot} with a priority: "${inbox.table}" has none; give it the role priority`,
    );
  }
  if (typeof priority === "bigint" || Number.isSafeInteger(priority)) return BigInt(priority);
  throw new RangeError(`${cannot} with priority ${String(priority)}: give a whole number`);
}

/** Text of a role that is a key; one that the column cannot hold is refused by the database. */
function checkText(
  { inbox }: AnyQueue,
  role: "partitionKey" | "uniqueKey",
  text: string | undefined,
  cannot: string,
): string | null {
  if (text === undefined) return null;
  if (inbox.description[role] === undefined) {
    throw new DeclarationError(
      `${cannot} with a key: "${inbox.table}" has no column for it; give it the role ${role}`,
    );
  }
  if (typeof text !== "string" || text === "") {
    throw new TypeError(`${cannot} with ${describeValue(text)} as ${role}: give text`);
  }
  if (role === "uniqueKey" && text.endsWith(" ")) {
    throw new TypeError(
      `${cannot} with ${
        describeValue(text)
      } as ${role}: MySQL and MariaDB do not tell texts apart ` +
        `by spaces at their end; leave them out`,
    );
  }
  return storable(text, `${cannot} with this ${role}`);
}

function checkHeaders(
  { inbox }: AnyQueue,
  headers: Headers | undefined,
  cannot: string,
): string | null {
  if (headers === undefined) return null;
  if (inbox.description.headers === undefined) {
    throw new DeclarationError(
      `${cannot} with headers: "${inbox.table}" cannot keep them; give it the role headers`,
    );
  }
  try {
    return encodeHeaders(headers);
  } catch (cause) {
    throw new PayloadError(`${cannot}: ${(cause as Error).message}; nothing was written`, {
      cause,
    });
  }
}

/** Text that every database can hold; the error names the place. */
function storable(text: string, cannot: string): string {
  try {
    return storableText(text);
  } catch (cause) {
    throw new PayloadError(`${cannot}: ${(cause as Error).message}; nothing was written`, {
      cause,
    });
  }
}

function describeValue(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

function checkTime(
  { inbox }: AnyQueue,
  { delay, at }: PublishOptions,
  cannot: string,
): Pick<CheckedPublish, "delay" | "at"> {
  if (delay === undefined && at === undefined) return { delay: 0, at: undefined };
  if (delay !== undefined && at !== undefined) {
    throw new TypeError(`${cannot} with a delay and a time: give one of delay and at`);
  }
  if (inbox.description.retryAfter === undefined) {
    throw new DeclarationError(
      `${cannot} for later: "${inbox.table}" cannot keep the time; give it the role retryAfter`,
    );
  }
  return delay === undefined
    ? { delay: 0, at: checkInstant(at!, cannot) }
    : { delay: toDelay(delay, "the delay of a publish", cannot), at: undefined };
}

function checkInstant(at: Instant, cannot: string): number {
  const time = at instanceof Date ? at.getTime() : Number(Object(at).epochMilliseconds ?? NaN);
  if (time >= FIRST_INSTANT && time < END_OF_INSTANTS) return time;
  throw new TypeError(
    `${cannot} at ${String(at)}: give a Date or a Temporal.Instant of the years 1970 to 9999`,
  );
}

/** Columns that play no role, checked; also those of a message that is a row. */
export function checkColumns(
  { inbox: { description } }: AnyQueue,
  columns: Readonly<Record<string, unknown>>,
  cannot: string,
): Readonly<Record<string, SqlValue>> {
  if (typeof columns !== "object" || columns === null || Array.isArray(columns)) {
    throw new TypeError(`${cannot} with ${String(columns)} as columns: give { column: value, … }`);
  }
  const roles = Object.entries(columnNames(description));
  const checked: Record<string, SqlValue> = {};
  for (const [name, value] of Object.entries(columns)) {
    // Most databases do not tell names apart by case.
    const [role] = roles.find(([, column]) => isSameName(column, name)) ?? [];
    if (role !== undefined) {
      throw new DeclarationError(
        `${cannot} with the column "${name}": it plays the role ${role}, which Holdfast writes`,
      );
    }
    checked[name] = checkValue(name, value, cannot);
  }
  return checked;
}

function isSameName(column: unknown, name: string): boolean {
  return typeof column === "string" && column.toLowerCase() === name.toLowerCase();
}

function checkValue(name: string, value: unknown, cannot: string): SqlValue {
  if (typeof value === "boolean") return value ? 1n : 0n;
  if (typeof value === "number" && Number.isFinite(value)) {
    return Number.isSafeInteger(value) ? BigInt(value) : String(value);
  }
  if (value === null || typeof value === "bigint" || value instanceof Uint8Array) return value;
  if (typeof value === "string") return storable(value, `${cannot} with the column "${name}"`);
  throw new TypeError(
    `${cannot} with ${
      String(value)
    } in the column "${name}": give text, a finite number, a bigint, ` +
      `a boolean, bytes or null`,
  );
}

/** The options of a message, whatever it is published in. */
export const MESSAGE_OPTIONS: readonly string[] = [
  "delay",
  "at",
  "priority",
  "key",
  "uniqueKey",
  "headers",
  "columns",
];
const OPTIONS: readonly string[] = [...MESSAGE_OPTIONS, "tx"];
const FIRST_INSTANT = 0;
const END_OF_INSTANTS = Date.UTC(10_000, 0);
