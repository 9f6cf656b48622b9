import type { MessageId, TableDescription } from "../driver/dialect.ts";
import { columnNames, type Role, type TimeRole } from "../driver/roles.ts";
import type { SqlRow } from "../driver/driver.ts";
import { quote, quoteTable } from "./quote.ts";
import type { PostgresFacts } from "./table_facts.ts";

/**
 * A described table as its statements name it; they call a row `t`. Values cross as text and are cast
 * in SQL, so that they are exact whatever the client makes of their types.
 */
export class Columns {
  readonly table: string;
  readonly id: string;
  readonly payload: string;
  readonly attempt: string | undefined;
  readonly lockedUntil: string | undefined;
  readonly group: string | undefined;
  readonly priority: string | undefined;
  readonly retryAfter: string | undefined;
  readonly processedAt: string | undefined;
  /** Whether rows may have no due time. */
  readonly dueMayBeNull: boolean;
  readonly #types: Readonly<Record<Role, string>>;

  constructor(table: TableDescription, { columns, nullable }: PostgresFacts) {
    const names = columnNames(table);
    const quoted = (name: string | undefined) => name === undefined ? undefined : quote(name);
    this.table = quoteTable(table.table);
    this.id = quote(table.id.column);
    this.payload = quote(table.payload.column);
    this.attempt = quoted(names.attempt);
    this.lockedUntil = quoted(names.lockedUntil);
    this.group = quoted(names.group);
    this.priority = quoted(names.priority);
    this.retryAfter = quoted(names.retryAfter);
    this.processedAt = quoted(names.processedAt);
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
    const payload = this.#types.payload === "bytea" ? this.payload : `${this.payload}::text`;
    const attempt = this.attempt === undefined ? "" : `, t.${this.attempt}::text AS attempt`;
    return `t.${this.id}::text AS id, t.${payload} AS payload${attempt}`;
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

const USUAL_TYPES: Readonly<Record<Role, string>> = {
  id: "text",
  payload: "text",
  attempt: "integer",
  lockedUntil: "timestamp with time zone",
  group: "text",
  priority: "integer",
  retryAfter: "timestamp with time zone",
  processedAt: "timestamp with time zone",
};
