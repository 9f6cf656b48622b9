import type { MessageId, TableDescription, TableFacts } from "../driver/dialect.ts";
import type { SqlRow, SqlValue } from "../driver/driver.ts";
import { quote, quoteTable } from "./quote.ts";

/** A described table as its statements name it, and how its values cross. */
export class Columns {
  readonly table: string;
  readonly id: string;
  readonly payload: string;
  readonly attempt: string | undefined;
  readonly lockedUntil: string;
  /** The full type of the id, with its collation: joins then find it by its index. */
  readonly idType: string;
  readonly #attemptType: string;
  readonly #timeType: string;

  constructor(table: TableDescription, { columns }: TableFacts) {
    this.table = quoteTable(table.table);
    this.id = quote(table.id.column);
    this.payload = quote(table.payload.column);
    this.attempt = table.attempt === undefined ? undefined : quote(table.attempt);
    this.lockedUntil = quote(table.lockedUntil ?? "");
    this.idType = columns.get(table.id.column) ?? "BIGINT";
    this.#attemptType = columns.get(table.attempt ?? "") ?? "int";
    this.#timeType = columns.get(table.lockedUntil ?? "") ?? "datetime(3)";
  }

  /** Whether times are milliseconds since 1970 in an integer. */
  get countsMilliseconds(): boolean {
    return this.#timeType.startsWith("bigint");
  }

  /** The type in which times are compared: to the microsecond, whatever the column keeps. */
  get timeType(): string {
    return this.countsMilliseconds ? "BIGINT" : "DATETIME(6)";
  }

  /** The highest number that the attempt column may reach before it is counted once more. */
  get highestAttempt(): number {
    const [, size = "int"] = /^(tiny|small|medium)?int/.exec(this.#attemptType) ?? [];
    return { tiny: 126, small: 32_766, medium: 8_388_606 }[size] ?? 2_147_483_646;
  }

  /** A time as a parameter. */
  encodeTime(time: number): SqlValue {
    if (this.countsMilliseconds) return BigInt(Math.floor(time));
    return new Date(time).toISOString().slice(0, -1).replace("T", " ");
  }

  /** A parameter that `encodeTime` made, as a time. */
  get timeParameter(): string {
    return this.countsMilliseconds ? "?" : "CAST(? AS DATETIME(6))";
  }

  /** A time as milliseconds since 1970. Sessions are in UTC. */
  milliseconds(time: string): string {
    return this.countsMilliseconds ? time : `CAST(ROUND(UNIX_TIMESTAMP(${time}) * 1000) AS SIGNED)`;
  }

  /** An id that a statement returned. */
  readId({ id }: SqlRow): MessageId {
    return /^(tiny|small|medium|big)?int/.test(this.idType) ? BigInt(id as string) : String(id);
  }
}
