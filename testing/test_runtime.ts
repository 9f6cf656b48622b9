import type { Driver } from "../src/driver/driver.ts";
import type { IdleSleep } from "../src/idle_sleep.ts";
import type { AppEvent, DeliveryRecord, Runtime, Seam } from "../src/runtime.ts";
import { AppDriver } from "./app_driver.ts";
import { idlePolls } from "./idle_polls.ts";
import type { SeamHold } from "./seam_hold.ts";
import type { AppTime, TestTime } from "./test_time.ts";

/** What a runtime needs of its test app. */
export interface TestRuntimeOptions {
  readonly time: TestTime;
  readonly appTime: AppTime;
  /** Rejects when the app crashes. */
  readonly crashed: Promise<never>;
  /** Told of everything that happens. */
  readonly observe: (event: AppEvent) => void;
}

/** A runtime that tells a test app of everything, and makes the faults that it asks for. */
export class TestRuntime implements Runtime {
  renewalsPaused = false;
  readonly clock: Runtime["clock"];
  readonly idleSleep?: IdleSleep;
  /** What holds deliveries at seams. */
  readonly holds: Set<SeamHold> = new Set();
  readonly #options: TestRuntimeOptions;
  readonly #drivers = new Map<Driver, AppDriver>();
  #hasEnded = false;

  /** Tells of everything that happens, until it has ended. */
  constructor(options: TestRuntimeOptions) {
    this.#options = options;
    const { time } = options;
    this.clock = time.isVirtual ? "given" : "database";
    this.idleSleep = idlePolls.get(time);
  }

  /** The drivers through which the app reaches its databases. */
  get drivers(): readonly AppDriver[] {
    return [...this.#drivers.values()];
  }

  /** The driver that stands in place of one of the app's, once. */
  driver(driver: Driver): Driver {
    const made = this.#drivers.get(driver) ?? new AppDriver(driver, this.#options.time);
    this.#drivers.set(driver, made);
    return made;
  }

  observe(event: AppEvent): void {
    if (!this.#hasEnded) this.#options.observe(event);
  }

  reach(seam: Seam, delivery: DeliveryRecord): Promise<void> | undefined {
    for (const hold of this.holds) {
      const held = hold.take(seam, delivery);
      if (held !== undefined) return this.#options.time.stand(held);
    }
  }

  /**
   * What a test asks of a broker takes its time from the app, and rejects when that crashes: the test
   * goes on, unlike the app's own code.
   */
  enter<T>(work: () => Promise<T>): Promise<T> {
    const { appTime, crashed } = this.#options;
    return appTime.isInside ? work() : Promise.race([appTime.run(work), crashed]);
  }

  /** Tells of nothing more: the process is gone. */
  end(): void {
    this.#hasEnded = true;
  }
}
