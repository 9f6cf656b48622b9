import { monotonic } from "../clock.ts";

/**
 * What is known of the clock that decides what is due: the host's own or, where the database's
 * rules, what it last said and the time that has passed since.
 */
export class DatabaseClock {
  readonly #given: () => number;
  #offset: number | undefined;

  /** @param given what statements take for the present where they do not ask the database */
  constructor(given: () => number) {
    this.#given = given;
  }

  /** The present, in milliseconds since 1970. */
  get now(): number {
    return this.#offset === undefined ? this.#given() : monotonic() + this.#offset;
  }

  /** The database has said what time it is; `undefined` where the host's clock rules. */
  observe(databaseNow: number | undefined): void {
    if (databaseNow !== undefined) this.#offset = databaseNow - monotonic();
  }
}
