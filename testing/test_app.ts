import type { App } from "../src/app.ts";
import type { SqlRow, SqlValue } from "../src/driver/driver.ts";
import type { Duration } from "../src/duration.ts";
import { ClosedError, DeclarationError, HoldfastError } from "../src/errors.ts";
import type { PublishOptions } from "../src/publish_options.ts";
import type { Published } from "../src/publisher.ts";
import type { AnyQueue, Queue } from "../src/queue.ts";
import { refuseUnknownOptions } from "../src/refuse_unknown_options.ts";
import { RunningApp, type ShutdownReport } from "../src/running_app.ts";
import type { AppEvent, DeliveryRecord, Runtime } from "../src/runtime.ts";
import type { StateValue } from "../src/state.ts";
import type { AnySubscription, Subscription } from "../src/subscription.ts";
import { SubscriberAssertions } from "./assertions.ts";
import { FakeTime, FakeTimeError, type FakeTimeOptions } from "./fake_time.ts";
import { LiveTime } from "./live_time.ts";
import type { PendingTimer, TestTime } from "./test_time.ts";
import { Trace } from "./trace.ts";

/** How a test app is started on real time. */
export interface LiveTestAppOptions {
  /** States in place of what the app's hooks set: `[mailer.with(fake)]`. */
  readonly state?: readonly StateValue[];
}

/** How a test app is started on virtual time. */
export interface TestAppOptions extends LiveTestAppOptions, FakeTimeOptions {}

/** The app has stopped, but something of it is left. */
export class LeakError extends HoldfastError {
  /** Always `"leak"`. */
  override readonly code = "leak";
}

/**
 * An app in a test: the one that production runs, unchanged, on virtual time (`start`) or on real
 * time (`startLive`). The same test body runs on both.
 *
 * ```ts
 * import { ack, App, Broker, inbox, json } from "@holdfast/inbox";
 * import { sqlite } from "@holdfast/inbox/sqlite";
 * import { TestApp } from "@holdfast/inbox/testing";
 *
 * const jobs = inbox("jobs", {
 *   id: "id",
 *   attempt: "attempt",
 *   lockedUntil: "locked_until",
 *   payload: json<{ hours: number }>("payload"),
 * });
 * const nap = jobs.queue("naps").subscribe(async ({ hours }) => {
 *   await new Promise((resolve) => setTimeout(resolve, hours * 3_600_000));
 *   return ack();
 * });
 * const broker = new Broker(sqlite(":memory:")).createTables(jobs).include(nap);
 *
 * await using app = await TestApp.start(new App({ name: "naps" }).withBroker(broker));
 * await app.publish(jobs.queue("naps"), { hours: 8 });
 * await app.advance({ hours: 8 }); // takes milliseconds
 * app.subscriber(nap).assertCalledOnce().assertSettled(ack());
 * ```
 */
export class TestApp implements AsyncDisposable {
  /** The app's clock. */
  readonly time: TestTime;
  /** Everything that happened, in order: publishes, claims, renewals, settles. */
  readonly trace: Trace = new Trace();
  readonly #app: App;
  readonly #deliveries: DeliveryRecord[] = [];
  readonly #runtime: TestRuntime;
  readonly #ownsTime: boolean;
  readonly #restless = Promise.withResolvers<never>();
  #instant = -1;
  #startsAtInstant = 0;
  #running: RunningApp | undefined;

  /**
   * Starts an app on virtual time. Its timers and its `Date` stand still but for `advance` and
   * `settled`; code outside the app keeps real time.
   *
   * @throws whatever `App.start` throws
   */
  static start(app: App, options: TestAppOptions = {}): Promise<TestApp> {
    refuseUnknownOptions("Cannot start a test app", options, [
      "state",
      "now",
      "limit",
      "patience",
      "seed",
    ]);
    const { state, ...timeOptions } = options;
    return TestApp.#start(new TestApp(app, new FakeTime(timeOptions), true), state);
  }

  /**
   * Starts an app on real time: real clocks, real polls.
   *
   * @throws whatever `App.start` throws
   */
  static startLive(app: App, { state }: LiveTestAppOptions = {}): Promise<TestApp> {
    return TestApp.#start(new TestApp(app, new LiveTime(), true), state);
  }

  /**
   * Starts an app on the clock of another test app, as a second process of the same service on the
   * same database would be. Stop it before the other.
   *
   * @throws whatever `App.start` throws
   */
  static join(other: TestApp, app: App, { state }: LiveTestAppOptions = {}): Promise<TestApp> {
    return TestApp.#start(new TestApp(app, other.time, false), state);
  }

  static async #start(
    test: TestApp,
    replaced: readonly StateValue[] = [],
  ): Promise<TestApp> {
    try {
      test.#running = await test.time.run(() =>
        RunningApp.start(test.#app, { runtime: test.#runtime, replaced })
      );
      await test.#quiet();
      return test;
    } catch (error) {
      if (test.#running === undefined) test.#leaveTime();
      else await test.stop().catch(() => {});
      throw error;
    }
  }

  private constructor(app: App, time: TestTime, ownsTime: boolean) {
    this.#app = app;
    this.time = time;
    this.#ownsTime = ownsTime;
    this.#restless.promise.catch(() => {});
    this.#runtime = new TestRuntime(
      time instanceof FakeTime ? "given" : "database",
      (event) => this.#observe(event),
    );
  }

  /** Every delivery that has started, in order. */
  get deliveries(): readonly DeliveryRecord[] {
    return this.#deliveries;
  }

  /**
   * Publishes, and waits until the app has done all it can do about it without time passing.
   *
   * @throws whatever `App.publish` throws
   */
  async publish<In>(
    queue: Queue<In, unknown>,
    message: NoInfer<In>,
    options?: PublishOptions,
  ): Promise<Published> {
    const running = this.#started("publish");
    return await this.#passTimeUntil(
      this.time.run(async () => await running.publish(queue as AnyQueue, message, options)),
    );
  }

  /** Lets time pass: at once where it is virtual, else by waiting. */
  async advance(duration: Duration): Promise<void> {
    await Promise.race([this.time.advance(duration), this.#restless.promise]);
  }

  /** Lets as much time pass as it takes until no delivery is in work. */
  async settled(): Promise<void> {
    await this.#quiet();
    while (this.#deliveries.some(({ endedAt }) => endedAt === undefined)) await this.#passTime();
  }

  /**
   * What can be asserted of a subscription.
   *
   * @throws {DeclarationError} if the app does not include it
   */
  subscriber<Out>(subscription: Subscription<Out>): SubscriberAssertions<Out> {
    const known = this.#app.brokers.some(({ subscriptions }) =>
      subscriptions.includes(subscription as AnySubscription)
    );
    if (!known) {
      throw new DeclarationError(
        `Cannot assert of this subscription of queue "${subscription.queue.name}": the app ` +
          `"${this.#app.name}" does not include it; give the very object that it includes`,
      );
    }
    const deliveries = this.#deliveries.filter((delivery) =>
      delivery.subscription === (subscription as AnySubscription)
    );
    return new SubscriberAssertions(subscription.queue.name, deliveries, this.trace);
  }

  /**
   * Runs SQL on the database of the app's first broker, as a test must to see or to make rows.
   *
   * @returns the rows; integers are `bigint`
   */
  query(text: string, params: readonly SqlValue[] = []): Promise<readonly SqlRow[]> {
    this.#started("query");
    return this.time.track(async () => {
      const session = await this.#app.brokers[0]!.driver.session();
      try {
        return (await session.query(text, params)).rows;
      } finally {
        await session.release();
      }
    });
  }

  /** From now on no lease is renewed, as in a process that stands still. */
  pauseRenewals(): void {
    this.#runtime.renewalsPaused = true;
  }

  /** From now on leases are renewed again. */
  resumeRenewals(): void {
    this.#runtime.renewalsPaused = false;
  }

  /**
   * Stops the app as production does, letting as much time pass as it takes.
   *
   * @throws {LeakError} if a timer or a handler is left
   */
  async stop(): Promise<ShutdownReport> {
    const running = this.#started("stop");
    this.#running = undefined;
    try {
      const report = await this.#passTimeUntil(this.time.run(() => running.stop()), "give up");
      this.#checkLeaks();
      return report;
    } finally {
      this.#leaveTime();
    }
  }

  /** Stops the app, unless it has been stopped. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#running !== undefined) await this.stop();
  }

  #observe(event: AppEvent): void {
    this.trace.add(this.time.elapsed, event);
    if (event.type !== "started") return;
    this.#deliveries.push(event.delivery);
    this.#countStart(event.delivery);
  }

  /** On virtual time, deliveries without end at one instant would keep the clock from ever moving. */
  #countStart({ queue, id }: DeliveryRecord): void {
    if (this.time instanceof LiveTime) return;
    const sameInstant = this.time.elapsed === this.#instant;
    this.#instant = this.time.elapsed;
    this.#startsAtInstant = sameInstant ? this.#startsAtInstant + 1 : 1;
    if (this.#startsAtInstant !== MOST_STARTS) return;
    this.#restless.reject(
      new FakeTimeError(
        "endless",
        `Cannot let the app come to rest: ${MOST_STARTS} deliveries started at one instant, the ` +
          `last one message ${id} of queue "${queue}"; retry after a delay, or publish less`,
      ),
    );
  }

  /** Up to the next timer where time is virtual, else a little. */
  #passTime(): Promise<void> {
    const next = this.time.pending[0];
    return next === undefined ? this.time.advance(1) : this.time.advanceTo(next.due);
  }

  /** A stop must come to its end also where a delivery waits for what no timer drives. */
  async #passTimeUntil<T>(done: Promise<T>, stuck?: "give up"): Promise<T> {
    let pending = true;
    const settle = (): void => {
      pending = false;
    };
    done.then(settle, settle);
    const errors: unknown[] = [];
    for (;;) {
      try {
        await (stuck === undefined ? this.#quiet() : this.time.quiet());
        if (!pending) break;
        await this.#passTime();
      } catch (error) {
        if (stuck === undefined || isEndless(error)) throw error;
        if (error instanceof FakeTimeError) this.time.giveUp();
        else errors.push(error); // of a timer's callback
      }
    }
    if (errors.length > 0) throw errors[0];
    return await done;
  }

  /** As the clock's, but a reaction that never comes to rest is an error. */
  async #quiet(): Promise<void> {
    await Promise.race([this.time.quiet(), this.#restless.promise]);
  }

  /** An app that joined has another's clock, whose timers are not its own. */
  #leaveTime(): void {
    if (this.#ownsTime) this.time[Symbol.dispose]();
  }

  #checkLeaks(): void {
    const timers = this.#ownsTime ? this.time.pending.filter(({ refed }) => refed) : [];
    const handlers = this.#deliveries.filter(({ endedAt }) => endedAt === undefined);
    if (timers.length + handlers.length === 0) return;
    const leaks = [...timers.map(describeTimer), ...handlers.map(describeHandler)];
    throw new LeakError(`The app "${this.#app.name}" has stopped but left:\n${leaks.join("\n")}`);
  }

  #started(what: string): RunningApp {
    if (this.#running !== undefined) return this.#running;
    throw new ClosedError(
      `Cannot ${what}: the test app "${this.#app.name}" has been stopped; start another`,
    );
  }
}

function isEndless(error: unknown): boolean {
  return error instanceof FakeTimeError && error.reason === "endless";
}

/** As many deliveries may start at one instant of virtual time. */
const MOST_STARTS = 10_000;

/** A runtime that tells a test app of everything. */
class TestRuntime implements Runtime {
  renewalsPaused = false;
  readonly clock: Runtime["clock"];
  readonly observe: (event: AppEvent) => void;

  constructor(clock: Runtime["clock"], observe: (event: AppEvent) => void) {
    this.clock = clock;
    this.observe = observe;
  }
}

function describeTimer({ kind, delivery, stack }: PendingTimer): string {
  const owner = delivery === undefined ? "" : ` of ${delivery}`;
  return `- a timer (${kind})${owner} that was never cleared, created here:\n${stack}`;
}

function describeHandler({ queue, id }: DeliveryRecord): string {
  return `- the handler of message ${id} of queue "${queue}", which did not heed delivery.signal`;
}
