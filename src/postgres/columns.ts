import type { MessageId, RowContent, TableDescription } from "../driver/dialect.ts";
import { columnNames, cutText, LONGEST_ERROR, type Role, type TimeRole } from "../driver/roles.ts";
import type { SqlRow, SqlValue } from "../driver/driver.ts";
import { plainNumber } from "../driver/plain_number.ts";
import { quote, quoteTable } from "./quote.ts";
import type { PostgresFacts } from "./table_facts.ts";

/**
 * A described table as its statements name it; they call a row `t`. Values cross as text and are cast
 * in SQL, so that they are exact whatever the client makes of their types.
 */
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
  readonly #types: Readonly<Record<Role, string>>;
  /** Every column with its type, where the row itself is the message. */
  readonly #row: ReadonlyMap<string, string> | undefined;

  readonly #errorLength: number;

  constructor(table: TableDescription, { columns, nullable, errorLength }: PostgresFacts) {
    const names = columnNames(table);
    const quoted = (name: string | undefined) => name === undefined ? undefined : quote(name);
    this.table = quoteTable(table.table);
    this.id = quote(table.id.column);
    this.payload = quoted(names.payload);
    this.attempt = quoted(names.attempt);
    this.lockedUntil = quoted(names.lockedUntil);
    this.group = quoted(names.group);
    this.priority = quoted(names.priority);
    this.retryAfter = quoted(names.retryAfter);
    this.processedAt = quoted(names.processedAt);
    this.headers = quoted(names.headers);
    this.partitionKey = quoted(names.partitionKey);
    this.uniqueKey = quoted(names.uniqueKey);
    this.lastError = quoted(names.lastError);
    this.#errorLength = Math.min(errorLength ?? LONGEST_ERROR, LONGEST_ERROR);
    this.#row = table.payload === undefined ? columns : undefined;
    this.dueMayBeNull = nullable?.has(names.retryAfter ?? "") ?? true;
    this.#types = Object.fromEntries(
      Object.entries(USUAL_TYPES).map(
        ([role, type]) => [role, columns.get(names[role as Role] ?? "") ?? type],
      ),
    ) as Record<Role, string>;
  }

  /** The type of a role's column. */
  type(role: Role): string {
    return this.#types[role];
  }

  /** Text, a placeholder of it, as a value of a role's column. */
  cast(role: Role, text: string): string {
    return `${text}::text::${this.#types[role]}`;
  }

  /** Whether a role's times are milliseconds since 1970 in an integer. */
  countsMilliseconds(role: TimeRole): boolean {
    return this.#types[role] === "bigint";
  }

  /** A time as text that `cast` takes. */
  encodeTime(role: TimeRole, time: number): string {
    return this.countsMilliseconds(role) ? String(Math.floor(time)) : new Date(time).toISOString();
  }

  /** What a delivery needs of a row. Bytes cross as they are, all else as the server's own text. */
  get delivered(): string {
    const asText = (column: string | undefined, name: string): readonly string[] =>
      column === undefined ? [] : [`t.${column}::text AS ${name}`];
    const payload = this.payload !== undefined && this.#types.payload === "bytea"
      ? [`t.${this.payload} AS payload`]
      : asText(this.payload, "payload");
    return [
      `t.${this.id}::text AS id`,
      ...payload,
      ...asText(this.attempt, "attempt"),
      ...asText(this.headers, "headers"),
      ...asText(this.partitionKey, "partition_key"),
      ...(this.lastError === undefined ? [] : [`(t.${this.lastError} IS NOT NULL)::int AS failed`]),
      ...[...this.#row?.keys() ?? []].map((name) =>
        `t.${quote(name)} AS ${quote(`${ROW}${name}`)}`
      ),
    ].join(", ");
  }

  /** What a row that was claimed holds for its handler. */
  readContent(row: SqlRow): RowContent {
    const { payload, headers, partition_key: key, failed } = row;
    return {
      payload: this.#row === undefined ? payload ?? null : undefined,
      ...(this.#row && { row: readRow(this.#row, row) }),
      headers: this.headers === undefined ? undefined : headers ?? null,
      key: this.partitionKey === undefined || key === null ? undefined : String(key),
      hasFailed: Number(failed ?? 0) === 1,
    };
  }

  /** An error as the column of the role `lastError` can hold it; NULL where there is none. */
  encodeError(error: string | undefined): string | null {
    return error === undefined ? null : cutText(error, this.#errorLength);
  }

  /** Sets the attempt column one higher; nothing where there is none. What it cannot hold it skips. */
  get countAttempt(): readonly string[] {
    const highest = this.#types.attempt === "smallint" ? 32_766 : 2_147_483_646;
    return this.attempt === undefined
      ? []
      : [`${this.attempt} = least(greatest(coalesce(t.${this.attempt}, 1), 1), ${highest}) + 1`];
  }

  /** An id that a statement returned as text. */
  readId({ id }: SqlRow): MessageId {
    return ["bigint", "integer", "smallint"].includes(this.#types.id)
      ? BigInt(id as string)
      : String(id);
  }
}

/** Columns of a whole row are named so, that their names meet with no others. */
const ROW = "row.";

function readRow(
  columns: ReadonlyMap<string, string>,
  row: SqlRow,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Array.from(columns, ([name, type]) => [name, readValue(type, row[`${ROW}${name}`] ?? null)]),
  );
}

/** Whole numbers are numbers where those are exact; what has no type here is the server's text. */
function readValue(type: string, value: SqlValue): unknown {
  if (value === null) return null;
  if (type === "boolean") return Number(value) === 1;
  if (type === "json" || type === "jsonb") return JSON.parse(String(value));
  return plainNumber(value);
}

const USUAL_TYPES: Readonly<Record<Role, string>> = {
  id: "text",
  payload: "text",
  attempt: "integer",
  lockedUntil: "timestamp with time zone",
  group: "text",
  priority: "integer",
  retryAfter: "timestamp with time zone",
  processedAt: "timestamp with time zone",
  headers: "text",
  partitionKey: "text",
  uniqueKey: "text",
  lastError: "text",
};
