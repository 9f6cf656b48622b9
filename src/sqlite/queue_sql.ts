import type { QueueUse } from "../driver/dialect.ts";
import { join, type Sql, sql, type SqlPart } from "../driver/sql.ts";
import type { TimeRole } from "../driver/roles.ts";
import { type Columns, iso } from "./columns.ts";

/** What a condition on a time is asked with, in milliseconds since 1970. */
export interface Now {
  readonly now: number;
}

/** What holds for the rows of one queue, as conditions of its statements. */
export class QueueSql {
  readonly columns: Columns;
  readonly #use: QueueUse;

  constructor(columns: Columns, use: QueueUse) {
    this.columns = columns;
    this.#use = use;
  }

  /** For the rows of the queue's group. */
  inGroup(): readonly Sql[] {
    const { group } = this.columns;
    const name = (): string => this.#use.group ?? "";
    return group === undefined ? [] : [sql`${group} = ${name}`];
  }

  /** For the queue's rows that are not done. */
  rows(): readonly Sql[] {
    return [...this.inGroup(), ...isNull(this.columns.processedAt)];
  }

  /** For the queue's rows that are neither done nor leased. */
  free(): readonly Sql[] {
    return [...this.rows(), ...isNull(this.columns.lockedUntil)];
  }

  /** For rows whose due time has come. */
  due(): readonly Sql<Now>[] {
    const { retryAfter, dueMayBeNull } = this.columns;
    if (retryAfter === undefined) return [];
    const come = this.hasCome("retryAfter");
    return [dueMayBeNull ? sql`(${retryAfter} IS NULL OR (${come}))` : come];
  }

  /** For rows that no lease holds. */
  unleased(): readonly Sql<Now>[] {
    const { lockedUntil } = this.columns;
    if (lockedUntil === undefined) return [];
    return [sql`(${lockedUntil} IS NULL OR (${this.hasCome("lockedUntil")}))`];
  }

  /** For rows that a lease holds. */
  leased(): readonly Sql<Now>[] {
    return this.isAhead("lockedUntil");
  }

  /** For rows whose time of a role is after the present. */
  isAhead(role: TimeRole): readonly Sql<Now>[] {
    const column = this.columns[role]!;
    if (this.columns.storage(role) === "milliseconds") return [sql`${column} > ${this.now(role)}`];
    // The first bound, which an index serves, lets through every later time of either format.
    const day = ({ now }: Now): string => iso(now).slice(0, 10);
    return [
      sql`${column} >= ${day}`,
      sql`julianday(${column}) > julianday(${this.now(role)})`,
    ];
  }

  /**
   * For rows whose time of a role is not after the present. Text compares rightly only within one
   * format: the first bound, which an index serves, lets through every such row of either format, and
   * julianday, exact to the millisecond, decides.
   */
  hasCome(role: TimeRole): Sql<Now> {
    const column = this.columns[role]!;
    if (this.columns.storage(role) === "milliseconds") {
      return sql`${column} <= ${this.now(role)}`;
    }
    const bound = ({ now }: Now): string => `${iso(now).slice(0, 19)}~`;
    return sql`${column} <= ${bound} AND julianday(${column}) <= julianday(${this.now(role)})`;
  }

  /** What rows are ordered by, by their time of a role: text of both formats has to be sorted. */
  order(role: TimeRole): string {
    const column = this.columns[role]!;
    const { id } = this.columns;
    return this.columns.storage(role) === "text"
      ? `julianday(${column}), ${id}`
      : `${column}, ${id}`;
  }

  /** The present as a value of a role's column. */
  now(role: TimeRole): (values: Now) => ReturnType<Columns["encodeTime"]> {
    return ({ now }) => this.columns.encodeTime(role, now);
  }

  /** SQLite lets an id be NULL, or bytes, which no claim could name again. */
  get readable(): string {
    return `typeof(${this.columns.id}) IN ('integer', 'text')`;
  }
}

/** Conditions as a WHERE clause; empty where there are none. */
export function where<Values>(...conditions: readonly SqlPart<Values>[]): Sql<Values> {
  return conditions.length === 0 ? join([], "") : sql`WHERE ${join(conditions, " AND ")} `;
}

function isNull(column: string | undefined): readonly Sql[] {
  return column === undefined ? [] : [sql`${column} IS NULL`];
}
