import type { MessageId, TableDescription } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import type { ClaimIndex, ClaimIndexes, ClaimRange } from "./claim_indexes.ts";
import { quote, quoteTable } from "./quote.ts";
import { columnNames, type Role, type TimeRole } from "../driver/roles.ts";
import type { MysqlFacts } from "./table_facts.ts";

/** A described table as its statements name it; they call a row `t`. */
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
  readonly #indexes: ClaimIndexes;

  constructor(table: TableDescription, { columns, nullable, indexes = {} }: MysqlFacts) {
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
    const attempt = this.attempt === undefined ? "" : `, t.${this.attempt} AS attempt`;
    return `t.${this.id} AS id, t.${this.payload} AS payload${attempt}`;
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

const USUAL_TYPES: Readonly<Record<Role, string>> = {
  id: "bigint",
  payload: "longtext",
  attempt: "int",
  lockedUntil: "datetime(3)",
  group: "varchar(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
  priority: "int",
  retryAfter: "datetime(3)",
  processedAt: "datetime(3)",
};
