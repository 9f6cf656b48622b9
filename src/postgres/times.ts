import type { Clock } from "../driver/dialect.ts";
import type { TimeRole } from "../driver/roles.ts";
import type { Columns } from "./columns.ts";
import type { Placeholders } from "./parameters.ts";

/**
 * The present and times after it as one statement writes them, by the clock that rules. That of the
 * database is the statement's own time, which an index can be searched for.
 */
export class Times<Values extends { readonly now: number }> {
  readonly #columns: Columns;
  readonly #clock: Clock;
  readonly #parameters: Placeholders<Values>;
  readonly #given = new Map<string, string>();

  constructor(columns: Columns, clock: Clock, parameters: Placeholders<Values>) {
    this.#columns = columns;
    this.#clock = clock;
    this.#parameters = parameters;
  }

  /** The present as a value of a role's column. */
  now(role: TimeRole): string {
    if (this.#clock === "given") return this.#givenNow(role);
    return this.#columns.countsMilliseconds(role)
      ? `floor(${EPOCH} * 1000)::bigint`
      : "statement_timestamp()";
  }

  /** The present and this many milliseconds, as a value of a role's column. */
  after(role: TimeRole, delay: (values: Values) => number): string {
    if (this.#clock === "given") return this.at(role, (values) => values.now + delay(values));
    const milliseconds = `${this.#parameters.add((values) => String(delay(values)))}::text::float8`;
    return this.#columns.countsMilliseconds(role)
      ? `floor(${EPOCH} * 1000 + ${milliseconds})::bigint`
      : `statement_timestamp() + ${milliseconds} * interval '1 millisecond'`;
  }

  /** A time that the caller knows, or NULL, as a value of a role's column. */
  at(role: TimeRole, time: (values: Values) => number | undefined): string {
    const text = this.#parameters.add((values) => {
      const known = time(values);
      return known === undefined ? null : this.#columns.encodeTime(role, known);
    });
    return this.#columns.cast(role, text);
  }

  #givenNow(role: TimeRole): string {
    const type = this.#columns.type(role);
    const known = this.#given.get(type);
    if (known !== undefined) return known;
    const now = this.at(role, ({ now }) => now);
    this.#given.set(type, now);
    return now;
  }
}

/** The statement's own time in seconds since 1970. */
export const EPOCH = "extract(epoch FROM statement_timestamp())";
