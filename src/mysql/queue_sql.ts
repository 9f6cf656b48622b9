import type { QueueUse } from "../driver/dialect.ts";
import type { Columns } from "./columns.ts";
import { type Sql, sql } from "../driver/sql.ts";
import { type Now, Times } from "./times.ts";

/** What holds for the rows of one queue, as conditions of its statements. */
export class QueueSql {
  readonly columns: Columns;
  readonly times: Times;
  readonly #use: QueueUse;

  constructor(columns: Columns, use: QueueUse) {
    this.columns = columns;
    this.times = new Times(columns, use.clock);
    this.#use = use;
  }

  /** For the rows of the queue's group. */
  inGroup(row = "t"): readonly Sql[] {
    const { group } = this.columns;
    const name = (): string => this.#use.group ?? "";
    return group === undefined ? [] : [sql`${row}.${group} = ${name}`];
  }

  /** For the queue's rows that are not done. */
  rows(row = "t"): readonly Sql[] {
    const { processedAt } = this.columns;
    return processedAt === undefined
      ? this.inGroup(row)
      : [...this.inGroup(row), sql`${row}.${processedAt} IS NULL`];
  }

  /** For the queue's rows that are neither done nor leased. */
  free(row = "t"): readonly Sql[] {
    const { lockedUntil } = this.columns;
    return lockedUntil === undefined
      ? this.rows(row)
      : [...this.rows(row), sql`${row}.${lockedUntil} IS NULL`];
  }

  /** For rows whose due time has come. */
  due(row = "t"): readonly Sql<Now>[] {
    const { retryAfter, dueMayBeNull } = this.columns;
    return retryAfter === undefined
      ? []
      : [this.#hasCome(row, retryAfter, "retryAfter", dueMayBeNull)];
  }

  /** For rows that no lease holds. */
  unleased(row = "t"): readonly Sql<Now>[] {
    const { lockedUntil } = this.columns;
    return lockedUntil === undefined ? [] : [this.#hasCome(row, lockedUntil, "lockedUntil", true)];
  }

  #hasCome(
    row: string,
    column: string,
    role: "retryAfter" | "lockedUntil",
    mayBeNull: boolean,
  ): Sql<Now> {
    const come = sql<Now>`${row}.${column} <= ${this.times.now(role)}`;
    return mayBeNull ? sql`(${row}.${column} IS NULL OR ${come})` : come;
  }
}
