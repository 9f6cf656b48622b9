import type { Clock } from "../driver/dialect.ts";
import type { Columns } from "./columns.ts";
import { encodeTime, roundDown, roundUp } from "./encode_time.ts";
import type { TimeRole } from "../driver/roles.ts";
import { type Sql, sql } from "../driver/sql.ts";

/** What every statement that tells the time is run with. */
export interface Now {
  /** The present, where the given clock rules; in milliseconds since 1970. */
  readonly now: number;
}

/**
 * The present and times after it, by the clock that rules; that of the database is the statement's
 * own time, which an index can be searched for. What is compared has all digits of a second. What is
 * written has those that the column keeps: of the others one server rounds, and the other cuts off.
 */
export class Times {
  readonly #columns: Columns;
  readonly #clock: Clock;

  constructor(columns: Columns, clock: Clock) {
    this.#columns = columns;
    this.#clock = clock;
  }

  /** The present, to be compared with a role's column. */
  now(role: TimeRole): Sql<Now> {
    if (this.#clock === "given") return this.known(role, ({ now }) => now);
    return sql`${this.#columns.countsMilliseconds(role) ? MILLISECONDS : "UTC_TIMESTAMP(6)"}`;
  }

  /**
   * The last time not after the present that a role's column can hold. What is compared with it is
   * compared with the present; and MySQL, which skips among the values of an index by constants only,
   * takes none that is cast.
   */
  latest(role: TimeRole): Sql<Now> {
    if (this.#clock !== "given") return this.now(role);
    const columns = this.#columns;
    return sql`${({ now }) => encodeTime(columns, role, roundDown(columns, role, now))}`;
  }

  /** The present, to be written: never later than it is. */
  present(role: TimeRole): Sql<Now> {
    const columns = this.#columns;
    if (this.#clock === "given") {
      return this.known(role, ({ now }) => roundDown(columns, role, now));
    }
    const present = `UTC_TIMESTAMP(${columns.fraction(role)})`;
    return sql`${columns.countsMilliseconds(role) ? MILLISECONDS : present}`;
  }

  /** The present and this many milliseconds, to be written: never too early, and now if it is 0. */
  after<Values extends Now>(role: TimeRole, delay: (values: Values) => number): Sql<Values> {
    const columns = this.#columns;
    if (this.#clock === "given") {
      return this.known(
        role,
        (values: Values) => dueTime(columns, role, values.now, delay(values)),
      );
    }
    const size = 10 ** (6 - columns.fraction(role));
    const microseconds = (values: Values): bigint => {
      const length = Math.ceil(delay(values) * 1000);
      return length > 0 ? BigInt(length + size - 1) : 0n;
    };
    const sinceLastSecond = sql`(MICROSECOND(UTC_TIMESTAMP(6)) + ${microseconds})`;
    const unit = String(size);
    return columns.countsMilliseconds(role)
      ? sql`(${MICROSECONDS} + ${microseconds}) DIV ${unit}`
      : sql`UTC_TIMESTAMP() + INTERVAL ${sinceLastSecond} DIV ${unit} * ${unit} MICROSECOND`;
  }

  /** A time that the caller knows, or NULL. */
  known<Values>(role: TimeRole, time: (values: Values) => number | undefined): Sql<Values> {
    const parameter = (values: Values) => {
      const known = time(values);
      return known === undefined ? null : encodeTime(this.#columns, role, known);
    };
    return this.#columns.countsMilliseconds(role)
      ? sql`${parameter}`
      : sql`CAST(${parameter} AS DATETIME(6))`;
  }
}

/** This many milliseconds after the present, as a time that a role's column can hold. */
function dueTime(columns: Columns, role: TimeRole, now: number, delay: number): number {
  return delay > 0 ? roundUp(columns, role, now + delay) : roundDown(columns, role, now);
}

const MICROSECONDS = "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)";
const MILLISECONDS = `${MICROSECONDS} DIV 1000`;
