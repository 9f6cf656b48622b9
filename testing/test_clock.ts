import type { AppDriver } from "./app_driver.ts";
import type { AppTime, AppTimeOptions, TestTime } from "./test_time.ts";

/** The clock of one or more test apps, and what ends with it. */
export class TestClock {
  readonly time: TestTime;
  readonly #leftOpen: AppDriver[] = [];
  readonly #apps = new Set<AppTime>();
  #first: AppTime | undefined;

  /** Ends with the last app that it has. */
  constructor(time: TestTime) {
    this.time = time;
  }

  /** What one more app sees of it, until it leaves. */
  enter(options: AppTimeOptions): AppTime {
    const app = this.time.forApp(options);
    this.#first ??= app;
    this.#apps.add(app);
    return app;
  }

  /**
   * An app has crashed. What its drivers hold in memory is for whoever comes after it, up to the end
   * of the clock, which the first app's crash does not bring about.
   */
  crash(app: AppTime, drivers: readonly AppDriver[]): void {
    this.#leftOpen.push(...drivers);
    if (app !== this.#first) this.#apps.delete(app);
  }

  /** An app is gone for good. The last one that goes ends the clock. */
  async leave(app: AppTime): Promise<void> {
    this.#apps.delete(app);
    if (this.#apps.size > 0) return;
    this.time[Symbol.dispose]();
    for (const driver of this.#leftOpen.splice(0)) await driver.close();
  }
}
