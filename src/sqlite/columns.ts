import type { MessageId, RowContent, TableDescription, TableFacts } from "../driver/dialect.ts";
import type { SqlRow, SqlValue } from "../driver/driver.ts";
import { plainNumber } from "../driver/plain_number.ts";
import { cutText, LONGEST_ERROR, type TimeRole } from "../driver/roles.ts";
import { type TimeStorage, timeStorageOf } from "./affinity.ts";
import { quote, quoteTable } from "./quote.ts";

/** What the checks found, as SQLite's statements need it. */
export interface SqliteFacts extends TableFacts {
  /** The columns that may be NULL; all of them, if nothing is known. */
  readonly nullable?: ReadonlySet<string>;
}

/** A described table as its statements name it, and how its values cross. */
export class Columns {
  readonly table: string;
  readonly id: string;
  readonly payload: string | undefined;
  readonly attempt: string | undefined;
  readonly lockedUntil: string | undefined;
  readonly group: string | undefined;
  readonly priority: string | undefined;
  readonly retryAfter: string | undefined;
  readonly processedAt: string | undefined;
  readonly headers: string | undefined;
  readonly partitionKey: string | undefined;
  readonly uniqueKey: string | undefined;
  readonly lastError: string | undefined;
  /** Whether rows may have no due time. */
  readonly dueMayBeNull: boolean;
  readonly #storage: Readonly<Record<TimeRole, TimeStorage>>;
  /** Every column, where the row itself is the message. */
  readonly #row: readonly string[] | undefined;

  constructor(table: TableDescription, { columns, nullable, all = columns }: SqliteFacts) {
    const quoted = (name: string | undefined) => name === undefined ? undefined : quote(name);
    const storage = (name: string | undefined): TimeStorage =>
      timeStorageOf(columns.get(name ?? "") ?? "") ?? "milliseconds";
    this.table = quoteTable(table.table);
    this.id = quote(table.id.column);
    this.payload = quoted(table.payload?.column);
    this.attempt = quoted(table.attempt);
    this.lockedUntil = quoted(table.lockedUntil);
    this.group = quoted(table.group);
    this.priority = quoted(table.priority);
    this.retryAfter = quoted(table.retryAfter);
    this.processedAt = quoted(table.processedAt);
    this.headers = quoted(table.headers);
    this.partitionKey = quoted(table.partitionKey);
    this.uniqueKey = quoted(table.uniqueKey);
    this.lastError = quoted(table.lastError);
    this.#row = table.payload === undefined ? [...all.keys()] : undefined;
    this.dueMayBeNull = nullable?.has(table.retryAfter ?? "") ?? true;
    this.#storage = {
      lockedUntil: storage(table.lockedUntil),
      retryAfter: storage(table.retryAfter),
      processedAt: storage(table.processedAt),
    };
  }

  /** How a role's times are kept. */
  storage(role: TimeRole): TimeStorage {
    return this.#storage[role];
  }

  /** A time as a value of a role's column. */
  encodeTime(role: TimeRole, time: number): SqlValue {
    return this.storage(role) === "text" ? iso(time) : BigInt(Math.floor(time));
  }

  /** A time that a statement returned from a role's column, in milliseconds since 1970. */
  readTime(role: TimeRole, value: SqlValue | undefined): number {
    return this.storage(role) === "text" ? Date.parse(String(value)) : Number(value);
  }

  /** What a delivery needs of a row. */
  get delivered(): string {
    const named = (column: string | undefined, name: string): readonly string[] =>
      column === undefined ? [] : [`${column} AS ${name}`];
    return [
      ...named(this.id, "id"),
      ...named(this.payload, "payload"),
      ...named(this.attempt, "attempt"),
      ...named(this.headers, "headers"),
      ...named(this.partitionKey, "partition_key"),
      ...(this.lastError === undefined ? [] : [`${this.lastError} IS NOT NULL AS failed`]),
      ...(this.#row ?? []).map((name) => `${quote(name)} AS ${quote(`${ROW}${name}`)}`),
    ].join(", ");
  }

  /** What a row that was claimed holds for its handler. */
  readContent(row: SqlRow): RowContent {
    const { payload, headers, partition_key: key, failed } = row;
    return {
      payload: this.#row === undefined ? payload ?? null : undefined,
      ...(this.#row && {
        row: Object.fromEntries(
          this.#row.map((name) => [name, plainNumber(row[`${ROW}${name}`] ?? null)]),
        ),
      }),
      headers: this.headers === undefined ? undefined : headers ?? null,
      key: this.partitionKey === undefined || key === null ? undefined : String(key),
      hasFailed: Number(failed ?? 0) === 1,
    };
  }

  /** An error as the role `lastError` keeps it; NULL where there is none. */
  encodeError(error: string | undefined): string | null {
    return error === undefined ? null : cutText(error, LONGEST_ERROR);
  }

  /**
   * Sets the attempt column one higher; nothing where there is none. A missing, negative or too large
   * number counts as the nearest that is possible.
   */
  get countAttempt(): readonly string[] {
    const { attempt } = this;
    return attempt === undefined ? [] : [
      `${attempt} = min(max(CAST(coalesce(${attempt}, 1) AS INTEGER), 1), 2147483646) + 1`,
    ];
  }
}

/** Columns of a whole row are named so, that their names meet with no others. */
const ROW = "row.";

/** A time as ISO 8601 text. */
export function iso(time: number): string {
  return new Date(time).toISOString();
}

/** An id that a statement returned; `@db/sqlite` reads an integer that fits as a number. */
export function readId({ id }: SqlRow): MessageId {
  return typeof id === "string" ? id : BigInt(id as bigint | number);
}
