import { type Driver, DriverError } from "./holdfast.ts";
import { sleep } from "./sleep.ts";
import type { SqlRow } from "../../src/driver/driver.ts";

/** Looks at a database from outside of the app, and goes on when its connection is cut. */
export class Watcher implements AsyncDisposable {
  readonly #driver: Driver;

  /** Watches through a driver of its own. */
  static async open(driver: Driver): Promise<Watcher> {
    await driver.open();
    return new Watcher(driver);
  }

  private constructor(driver: Driver) {
    this.#driver = driver;
  }

  /** The rows of a statement, which is repeated as long as its connection is cut. */
  async rows(text: string): Promise<readonly SqlRow[]> {
    const end = Date.now() + 30_000;
    for (;;) {
      try {
        return await this.#query(text);
      } catch (error) {
        const isCut = error instanceof DriverError && error.kind === "disconnected";
        if (!isCut || Date.now() > end) throw error;
      }
      await sleep(10);
    }
  }

  /** The first row's column `count`. */
  async count(text: string): Promise<number> {
    const [row] = await this.rows(text);
    return Number(row?.count);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#driver.close();
  }

  async #query(text: string): Promise<readonly SqlRow[]> {
    const session = await this.#driver.session();
    try {
      return (await session.query(text)).rows;
    } finally {
      await session.release();
    }
  }
}
