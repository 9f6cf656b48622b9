import type { MessageId, RowContent, TableDescription } from "../driver/dialect.ts";
import type { SqlRow, SqlValue } from "../driver/driver.ts";
import { plainNumber } from "../driver/plain_number.ts";
import type { ClaimIndex, ClaimIndexes, ClaimRange } from "./claim_indexes.ts";
import { quote, quoteTable } from "./quote.ts";
import { columnNames, cutText, LONGEST_ERROR, type Role, type TimeRole } from "../driver/roles.ts";
import type { MysqlFacts } from "./table_facts.ts";

/** A described table as its statements name it; they call a row `t`. */
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
  readonly #indexes: ClaimIndexes;
  /** Every column with its type, where the row itself is the message. */
  readonly #row: ReadonlyMap<string, string> | undefined;

  constructor(table: TableDescription, facts: MysqlFacts) {
    const { columns, nullable, indexes = {}, all = columns } = facts;
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
    this.#row = table.payload === undefined ? all : undefined;
    this.dueMayBeNull = nullable?.has(names.retryAfter ?? "") ?? true;
    this.#indexes = indexes;
    this.#types = Object.fromEntries(
      Object.entries(USUAL_TYPES).map(
        ([role, type]) => [role, columns.get(names[role as Role] ?? "") ?? type],
      ),
    ) as Record<Role, string>;
  }

  /** The full type of a role's column, with its collation: joins then find it by its index. */
  type(role: Role): string {
    return this.#types[role];
  }

  /** Whether a role's times are milliseconds since 1970 in an integer. */
  countsMilliseconds(role: TimeRole): boolean {
    return this.#types[role].startsWith("bigint");
  }

  /** How many digits of a second a role's column keeps. */
  fraction(role: TimeRole): number {
    if (this.countsMilliseconds(role)) return 3;
    return Number(/^\w+\((\d)\)/.exec(this.#types[role])?.[1] ?? 0);
  }

  /** The index of a range of the claim; `undefined` where none serves it. */
  index(range: ClaimRange): ClaimIndex | undefined {
    return this.#indexes[range];
  }

  /**
   * The table, read by the index that serves a range. The server would often take another, or none,
   * and then read and lock rows that are not wanted.
   */
  tableBy(range: ClaimRange, alias = "t"): string {
    const index = this.#indexes[range];
    const forced = index === undefined ? "" : ` FORCE INDEX (${quote(index.name)})`;
    return `${this.table} AS ${alias}${forced}`;
  }

  /** What a delivery needs of a row. */
  get delivered(): string {
    const named = (column: string | undefined, name: string): readonly string[] =>
      column === undefined ? [] : [`t.${column} AS ${name}`];
    return [
      ...named(this.id, "id"),
      ...named(this.payload, "payload"),
      ...named(this.attempt, "attempt"),
      ...named(this.headers, "headers"),
      ...named(this.partitionKey, "partition_key"),
      ...(this.lastError === undefined ? [] : [`t.${this.lastError} IS NOT NULL AS failed`]),
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

  /** A column of the service's own, if there is one: it is in no index of the claim. */
  get inNoIndex(): string | undefined {
    const roles = Object.values(this).filter((value) => typeof value === "string");
    return [...this.#row?.keys() ?? []].map(quote).find((name) => !roles.includes(name));
  }

  /** An error as the column of the role `lastError` can hold it; NULL where there is none. */
  encodeError(error: string | undefined): string | null {
    const type = this.#types.lastError;
    const [, length = LONGEST_ERROR] = /^varchar\((\d+)\)/.exec(type) ?? [];
    const longest = type.startsWith("tinytext") ? LONGEST_TINY_TEXT : Number(length);
    return error === undefined ? null : cutText(error, Math.min(longest, LONGEST_ERROR));
  }

  /** Sets the attempt column one higher; nothing where there is none. What it cannot hold it skips. */
  get countAttempt(): readonly string[] {
    const { attempt } = this;
    if (attempt === undefined) return [];
    const [, size = "int"] = /^(tiny|small|medium)?int/.exec(this.#types.attempt) ?? [];
    const highest = { tiny: 126, small: 32_766, medium: 8_388_606 }[size] ?? 2_147_483_646;
    return [`t.${attempt} = LEAST(GREATEST(COALESCE(t.${attempt}, 1), 1), ${highest}) + 1`];
  }

  /** An id that a statement returned. */
  readId({ id }: SqlRow): MessageId {
    return /^(tiny|small|medium|big)?int/.test(this.#types.id) ? BigInt(id as string) : String(id);
  }
}

/** Columns of a whole row are named so, that their names meet with no others. */
const ROW = "row.";
/** In characters of four bytes. */
const LONGEST_TINY_TEXT = 63;

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
  return value !== null && type === "json" ? JSON.parse(String(value)) : plainNumber(value);
}

const USUAL_TYPES: Readonly<Record<Role, string>> = {
  id: "bigint",
  payload: "longtext",
  attempt: "int",
  lockedUntil: "datetime(3)",
  group: "varchar(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
  priority: "int",
  retryAfter: "datetime(3)",
  processedAt: "datetime(3)",
  headers: "text",
  partitionKey: "varchar(255)",
  uniqueKey: "varchar(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
  lastError: "text",
};
