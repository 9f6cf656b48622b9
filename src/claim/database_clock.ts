import { monotonic, now } from "../clock.ts";

/**
 * What is known of the clock that decides what is due: the host's own or, where the database's
 * rules, what it last said and the time that has passed since.
 */
export class DatabaseClock {
  #offset: number | undefined;

  /** The present, in milliseconds since 1970. */
  get now(): number {
    return this.#offset === undefined ? now() : monotonic() + this.#offset;
  }

  /** The database has said what time it is; `undefined` where the host's clock rules. */
  observe(databaseNow: number | undefined): void {
    if (databaseNow !== undefined) this.#offset = databaseNow - monotonic();
  }
}
