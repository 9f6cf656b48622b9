import type { LeaseToken, MessageId, TableDescription, TableFacts } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import { quote, quoteTable } from "./quote.ts";

/**
 * A described table as its statements name it. Values cross as text and are cast in SQL, so that
 * they are exact whatever the client makes of their types.
 */
export class Columns {
  readonly table: string;
  readonly id: string;
  readonly payload: string;
  readonly attempt: string | undefined;
  readonly lockedUntil: string;
  readonly #types: Readonly<Record<"id" | "payload" | "attempt" | "lockedUntil", string>>;

  constructor(table: TableDescription, { columns }: TableFacts) {
    this.table = quoteTable(table.table);
    this.id = quote(table.id.column);
    this.payload = quote(table.payload.column);
    this.attempt = table.attempt === undefined ? undefined : quote(table.attempt);
    this.lockedUntil = quote(table.lockedUntil ?? "");
    this.#types = {
      id: columns.get(table.id.column) ?? "text",
      payload: columns.get(table.payload.column) ?? "text",
      attempt: columns.get(table.attempt ?? "") ?? "integer",
      lockedUntil: columns.get(table.lockedUntil ?? "") ?? "timestamp with time zone",
    };
  }

  /** The type of a role's column. */
  type(role: "id" | "payload" | "attempt" | "lockedUntil"): string {
    return this.#types[role];
  }

  /** Text, a placeholder of it, as a value of a role's column. */
  cast(role: "id" | "payload" | "attempt" | "lockedUntil", text: string): string {
    return `${text}::text::${this.#types[role]}`;
  }

  /** Whether times are milliseconds since 1970 in an integer. */
  get countsMilliseconds(): boolean {
    return this.#types.lockedUntil === "bigint";
  }

  /** The highest number that the attempt column may reach before it is counted once more. */
  get highestAttempt(): number {
    return this.#types.attempt === "smallint" ? 32_766 : 2_147_483_646;
  }

  /** A time as text that `cast` takes. */
  encodeTime(time: number): string {
    return this.countsMilliseconds ? String(Math.floor(time)) : new Date(time).toISOString();
  }

  /** The attempt of a token as text that `cast` takes. */
  encodeAttempt({ attempt }: LeaseToken): string {
    return String(attempt ?? 0);
  }

  /** An id that a statement returned as text. */
  readId({ id }: SqlRow): MessageId {
    return ["bigint", "integer", "smallint"].includes(this.#types.id)
      ? BigInt(id as string)
      : String(id);
  }
}
