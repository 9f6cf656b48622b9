import type { Driver } from "../src/driver/driver.ts";

/** A driver that several apps of a test may have open at once: it is closed by the last of them. */
export class SharedDriver {
  readonly #driver: Driver;
  #users = 0;
  #opening: Promise<void> = Promise.resolve();

  private constructor(driver: Driver) {
    this.#driver = driver;
  }

  /** The same for every app that has this driver. */
  static of(driver: Driver): SharedDriver {
    const known = shared.get(driver);
    if (known !== undefined) return known;
    const made = new SharedDriver(driver);
    shared.set(driver, made);
    return made;
  }

  /** Opens it for the first of its users. */
  async open(): Promise<void> {
    if (this.#users++ === 0) this.#opening = this.#driver.open();
    try {
      await this.#opening;
    } catch (error) {
      this.#users--;
      throw error;
    }
  }

  /** Closes it for the last of its users. */
  async close(): Promise<void> {
    if (--this.#users === 0) await this.#driver.close();
  }
}

const shared = new WeakMap<Driver, SharedDriver>();
