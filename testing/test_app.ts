import { inspect } from "node:util";
import type { App } from "../src/app.ts";
import { timeScope } from "../src/clock.ts";
import type { NextDue } from "../src/driver/dialect.ts";
import type { SqlRow, SqlValue } from "../src/driver/driver.ts";
import { type Duration, toMilliseconds } from "../src/duration.ts";
import { ClosedError, DeclarationError } from "../src/errors.ts";
import type { PublishOptions } from "../src/publish_options.ts";
import type { Published } from "../src/publisher.ts";
import type { AnyQueue, Queue } from "../src/queue.ts";
import { refuseUnknownOptions } from "../src/refuse_unknown_options.ts";
import { RunningApp, type ShutdownReport } from "../src/running_app.ts";
import type { AppEvent, DeliveryRecord, PublishRecord, Seam } from "../src/runtime.ts";
import type { StateValue } from "../src/state.ts";
import type { AnySubscription, Subscription } from "../src/subscription.ts";
import type { SubscriptionLoop } from "../src/subscription_loop.ts";
import { AppDriver } from "./app_driver.ts";
import { SubscriberAssertions } from "./assertions.ts";
import { isBusyLoop } from "./busy_loop.ts";
import { Drain, type DrainOptions, type DrainReport } from "./drain.ts";
import { Expectation } from "./expectation.ts";
import { failedTests } from "./failed_tests.ts";
import { FakeTime, FakeTimeError, type FakeTimeOptions } from "./fake_time.ts";
import { LeakError } from "./leak_error.ts";
import { leaksOf } from "./leaks_of.ts";
import { LiveTime } from "./live_time.ts";
import { type Match, matches } from "./matches.ts";
import { PublishedAssertions } from "./published_assertions.ts";
import { SeamHold } from "./seam_hold.ts";
import { StartLimit } from "./start_limit.ts";
import { TestClock } from "./test_clock.ts";
import { TestRuntime } from "./test_runtime.ts";
import type { AppTime, TestTime } from "./test_time.ts";
import { Trace, type TraceEvent } from "./trace.ts";
import { VirtualScope } from "./virtual_scope.ts";
import { type Condition, waitFor, type WaitForOptions } from "./wait_for.ts";

/** How a test app is started on real time. */
export interface LiveTestAppOptions {
  /** States in place of what the app's hooks set: `[mailer.with(fake)]`. */
  readonly state?: readonly StateValue[];
}

/** How a test app joins the clock of another. */
export interface JoinOptions extends LiveTestAppOptions {
  /**
   * By how many milliseconds the clock of this app's host is ahead of the database's; negative is
   * behind. 0 unless given. Of effect on virtual time only.
   */
  readonly skew?: number;
}

/** How a test app is started on virtual time. */
export interface TestAppOptions extends JoinOptions, FakeTimeOptions {}

/** How long a database cannot be reached. */
export interface DisconnectOptions {
  /** From now on; it can be reached again at once unless given. */
  readonly for?: Duration;
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
  readonly #clock: TestClock;
  readonly #appTime: AppTime;
  readonly #runtime: TestRuntime;
  readonly #deliveries: DeliveryRecord[] = [];
  readonly #ended: DeliveryRecord[] = [];
  readonly #inWork = new Set<DeliveryRecord>();
  readonly #publishes: PublishRecord[] = [];
  readonly #starts: StartLimit;
  /** Rejects when the app crashes, for what then waits for it. */
  readonly #crashed = Promise.withResolvers<never>();
  #running: RunningApp | undefined;
  #end: "has been stopped" | "has crashed" = "has been stopped";

  /**
   * Starts an app on virtual time. Its timers and its `Date` stand still but for `advance` and
   * `settled`; code outside the app keeps real time.
   *
   * @throws whatever `App.start` throws
   */
  static start(app: App, options: TestAppOptions = {}): Promise<TestApp> {
    refuseUnknownOptions("Cannot start a test app", options, START_OPTIONS);
    const { state, skew, ...timeOptions } = options;
    const clock = new TestClock(new FakeTime(timeOptions));
    return TestApp.#start(new TestApp(app, { clock, skew }), state);
  }

  /**
   * Starts an app on real time: real clocks, real polls.
   *
   * @throws whatever `App.start` throws
   */
  static startLive(app: App, options: LiveTestAppOptions = {}): Promise<TestApp> {
    refuseUnknownOptions("Cannot start a live test app", options, LIVE_OPTIONS);
    const clock = new TestClock(new LiveTime());
    return TestApp.#start(new TestApp(app, { clock }), options.state);
  }

  /**
   * Starts an app on the clock of another test app, as a second process of the same service on the
   * same database would be, or the first one again after a crash. A driver may be shared by both, as one
   * of `:memory:` must be.
   *
   * @throws whatever `App.start` throws
   */
  static join(other: TestApp, app: App, options: JoinOptions = {}): Promise<TestApp> {
    refuseUnknownOptions("Cannot join a test app", options, JOIN_OPTIONS);
    const { state, skew } = options;
    return TestApp.#start(new TestApp(app, { clock: other.#clock, skew }), state);
  }

  static async #start(
    test: TestApp,
    replaced: readonly StateValue[] = [],
  ): Promise<TestApp> {
    try {
      test.#running = await test.#appTime.run(() =>
        RunningApp.start(test.#app, { runtime: test.#runtime, replaced })
      );
      await test.#quiet();
      return test;
    } catch (error) {
      if (test.#running === undefined) await test.#leaveClock();
      else await test.stop().catch(() => {});
      throw error;
    }
  }

  private constructor(app: App, { clock, skew }: TestAppParts) {
    this.#app = app;
    this.#clock = clock;
    this.time = clock.time;
    this.#appTime = clock.enter({ skew });
    this.#starts = new StartLimit(clock.time);
    this.#crashed.promise.catch(() => {});
    this.#runtime = new TestRuntime({
      time: clock.time,
      appTime: this.#appTime,
      crashed: this.#crashed.promise,
      observe: (event) => this.#observe(event),
    });
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
    const publishing = this.#appTime.run(async () =>
      await running.publish(queue as AnyQueue, message, options)
    );
    const published = Promise.race([publishing, this.#crashed.promise]);
    return await this.#noteFailure(this.#passTimeUntil(published));
  }

  /** Lets time pass: at once where it is virtual, else by waiting. */
  async advance(duration: Duration): Promise<void> {
    const advanced = Promise.race([this.time.advance(duration), this.#starts.exceeded]);
    await this.#noteFailure(advanced);
  }

  /** Lets as much time pass as it takes until no delivery is in work but those held at a seam. */
  settled(): Promise<void> {
    return this.#noteFailure(this.#settle());
  }

  async #settle(): Promise<void> {
    this.time.disturb();
    await this.#quiet();
    while (this.#isBusy()) await this.time.step();
  }

  /**
   * Lets time pass until a condition holds: until a function returns something true, or its assertions
   * no longer throw. It is asked whenever something may have changed.
   *
   * @throws {AssertionError} if it does not hold in time, with what happened instead
   */
  async waitFor(condition: Condition, options: WaitForOptions = {}): Promise<void> {
    refuseUnknownOptions("Cannot wait", options, WAIT_OPTIONS);
    this.time.disturb();
    const quiet = () => this.#quiet();
    const waiting = waitFor(condition, options, { time: this.time, trace: this.trace, quiet });
    await this.#noteFailure(waiting);
  }

  /**
   * Lets time pass until no message of the app's queues is left: those that wait for a retry, for a
   * later time, or for the lease of a process that is gone, are handled too.
   *
   * @throws {FakeTimeError} if it would go on for ever
   * @throws {DeclarationError} if a statement of the service's own finds the rows
   */
  async drain(options: DrainOptions = {}): Promise<DrainReport> {
    refuseUnknownOptions("Cannot drain", options, DRAIN_OPTIONS);
    const { loops } = this.#started("drain");
    this.time.disturb();
    const drained = {
      time: this.time,
      loops: loops.map((loop) => ({ queue: loop.queue, nextDue: () => this.#nextDue(loop) })),
      ended: this.#ended,
      isBusy: () => this.#isBusy(),
      quiet: () => this.#quiet(),
    };
    const drain = new Drain(drained, options).run();
    return await this.#noteFailure(Promise.race([drain, this.#crashed.promise]));
  }

  /**
   * What can be asserted of a subscription, as things stand.
   *
   * @throws {DeclarationError} if the app does not include it
   */
  subscriber<Out>(subscription: Subscription<Out>): SubscriberAssertions<Out> {
    const of = this.#included(subscription as AnySubscription, "assert of");
    const deliveries = this.#deliveries.filter(({ subscription }) => subscription === of);
    return new SubscriberAssertions(of.queue.name, deliveries, this.trace);
  }

  /** What can be asserted of the messages that the app has published to a queue, as things stand. */
  published<In>(queue: Queue<In, unknown>): PublishedAssertions<In> {
    return new PublishedAssertions(queue.name, this.#publishedTo(queue), this.trace);
  }

  /**
   * Asserts that a matching message is published while a block runs, and the app does what it then can
   * without time passing. What is rolled back counts too: its record tells.
   *
   * @returns what was published in the block and matches
   * @throws {AssertionError} if nothing is, with what was published instead
   * @throws whatever the block throws
   */
  async assertPublished<In>(
    queue: Queue<In, unknown>,
    match: Match<NoInfer<In>>,
    block: () => unknown,
  ): Promise<readonly PublishRecord[]> {
    const { published, matching } = await this.#publishedIn(block, queue, match);
    const wanted = `a publish in the block that matches ${inspect(match)}`;
    this.#expectation(queue).check(matching.length > 0, {
      wanted,
      found: inspect(published.map(({ message }) => message)),
      expected: match,
      actual: published,
    });
    return matching;
  }

  /** Asserts the contrary of `assertPublished`: that no matching message is published, or rolled back. */
  async assertNotPublished<In>(
    queue: Queue<In, unknown>,
    match: Match<NoInfer<In>>,
    block: () => unknown,
  ): Promise<void> {
    const { matching } = await this.#publishedIn(block, queue, match);
    this.#expectation(queue).check(matching.length === 0, {
      wanted: `no publish in the block that matches ${inspect(match)}`,
      found: inspect(matching.map(({ message }) => message)),
      expected: [],
      actual: matching,
    });
  }

  /**
   * Runs SQL on the database of the app's first broker, as a test must to see or to make rows.
   *
   * @returns the rows; integers are `bigint`
   */
  async query(text: string, params: readonly SqlValue[] = []): Promise<readonly SqlRow[]> {
    this.#started("query");
    const driver = new AppDriver(this.#app.brokers[0]!.driver, this.time);
    try {
      return await this.time.track(async () => {
        const session = await driver.session();
        try {
          return (await session.query(text, params)).rows;
        } finally {
          await session.release();
        }
      });
    } finally {
      // A condition that is waited for may ask again and again.
      if (!/^\s*SELECT\b/i.test(text)) this.time.disturb();
    }
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
   * Holds deliveries at a seam from now on: when a row has been claimed and its handler not called,
   * before what was decided is written, or after it.
   *
   * @param subscription whose deliveries; of all subscriptions if not given
   */
  holdAt<Out>(seam: Seam, subscription?: Subscription<Out>): SeamHold {
    this.#started("hold deliveries");
    if (subscription !== undefined) this.#included(subscription as AnySubscription, "hold");
    const hold = new SeamHold({
      seam,
      subscription: subscription as AnySubscription | undefined,
      waitFor: (condition) => this.waitFor(condition),
      quiet: () => this.#quiet(),
      onEnd: () => this.#runtime.holds.delete(hold),
    });
    this.#runtime.holds.add(hold);
    return hold;
  }

  /**
   * Cuts every connection of the app, as a network or a server that fails does: what is in flight is not
   * answered, and what was not committed is rolled back. Resolves when the app has done what it can
   * without time passing.
   */
  async disconnect(options: DisconnectOptions = {}): Promise<void> {
    refuseUnknownOptions("Cannot disconnect", options, DISCONNECT_OPTIONS);
    this.#started("disconnect");
    const { for: length } = options;
    const until = length === undefined ? -Infinity : this.time.now + toMilliseconds(length, "for");
    this.#trace({ type: "disconnected", until: length === undefined ? undefined : until });
    await this.#atDatabases((driver) => driver.cut(until));
    this.time.disturb();
    await this.#quiet();
  }

  /**
   * Ends the app as `kill -9` ends a process: nothing is settled, released or rolled back by it, its
   * timers do not fire, its sessions are cut. Start another with `join`, also the very same app: the clock
   * goes on at least until the app that started it is disposed of.
   *
   * Code of a handler that is not waiting for Holdfast or for a timer cannot be ended from outside: it
   * goes on until it does. A publish or drain of the test that is under way rejects.
   */
  async crash(): Promise<void> {
    const running = this.#started("crash");
    this.#running = undefined;
    this.#end = "has crashed";
    this.#trace({ type: "crashed" });
    this.#crashed.reject(this.#closedError("go on"));
    this.#runtime.end();
    this.#appTime.end();
    this.#inWork.clear();
    await this.#atDatabases((driver) => driver.kill());
    for (const record of this.#publishes) if (record.fate === "open") record.fate = "rolled back";
    await running.kill();
    this.#clock.crash(this.#appTime, this.#runtime.drivers);
    this.time.disturb();
  }

  /**
   * Stops the app as production does, letting as much time pass as it takes. What is held at seams goes
   * on.
   *
   * @throws {LeakError} if a timer, a handler or a connection is left
   */
  async stop(): Promise<ShutdownReport> {
    const running = this.#started("stop");
    this.#running = undefined;
    for (const hold of this.#runtime.holds) hold[Symbol.dispose]();
    try {
      const report = await this.#passTimeUntil(this.#appTime.run(() => running.stop()), "give up");
      this.#checkLeaks();
      return report;
    } finally {
      await this.#leaveClock();
    }
  }

  /**
   * Stops the app, unless it has been stopped, or has crashed. Where an assertion has failed, or time
   * could not pass, what is left is printed: thrown, it would hide that from the test's report.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#running !== undefined) await this.#stopAtEnd();
    else await this.#leaveClock();
  }

  async #stopAtEnd(): Promise<void> {
    try {
      await this.stop();
    } catch (error) {
      if (!(error instanceof LeakError) || !failedTests.has(this.trace)) throw error;
      console.error(error.message);
    }
  }

  async #noteFailure<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      failedTests.add(this.trace);
      throw error;
    }
  }

  #observe(event: AppEvent): void {
    this.#trace(event);
    if (!UNDISTURBING.includes(event.type)) this.time.disturb();
    switch (event.type) {
      case "published":
        this.#publishes.push(event.publish);
        break;
      case "started":
        this.#deliveries.push(event.delivery);
        this.#inWork.add(event.delivery);
        this.#starts.count(event.delivery);
        break;
      case "settled":
        this.#inWork.delete(event.delivery);
        this.#ended.push(event.delivery);
    }
  }

  #trace(event: TraceEvent): void {
    const scope = timeScope.getStore();
    const { name: by, isOver: isLate } = scope instanceof VirtualScope ? scope : UNKNOWN;
    this.trace.add({ elapsed: this.time.elapsed, event, by, isLate });
  }

  /** Whether a delivery is in work, and neither held at a seam nor in a handler that is. */
  #isBusy(): boolean {
    const held = new Set([...this.#runtime.holds].flatMap(({ deliveries }) => deliveries));
    const batches = new Set([...held].flatMap(({ batch }) => batch === undefined ? [] : [batch]));
    return [...this.#inWork].some((delivery) =>
      !held.has(delivery) && !(delivery.batch !== undefined && batches.has(delivery.batch))
    );
  }

  /** While a database cannot be reached, whatever may be there is due when it can be again. */
  async #nextDue(loop: SubscriptionLoop): Promise<NextDue | undefined> {
    const outage = Math.max(...this.#runtime.drivers.map(({ outage }) => outage));
    if (outage > 0) return { dueIn: outage, isWaiting: false };
    return await this.#appTime.run(() => loop.nextDue());
  }

  #publishedTo({ name }: Pick<AnyQueue, "name">): readonly PublishRecord[] {
    return this.#publishes.filter(({ queue }) => queue === name);
  }

  async #publishedIn<In>(
    block: () => unknown,
    queue: Queue<In, unknown>,
    match: Match<In>,
  ): Promise<{ published: readonly PublishRecord[]; matching: readonly PublishRecord[] }> {
    const before = this.#publishedTo(queue).length;
    await block();
    await this.#quiet();
    const published = this.#publishedTo(queue).slice(before);
    const matching = published.filter(({ message }) => matches(message as In, match));
    return { published, matching };
  }

  #expectation({ name }: Pick<AnyQueue, "name">): Expectation {
    return new Expectation(`queue "${name}"`, this.trace);
  }

  #included(subscription: AnySubscription, what: string): AnySubscription {
    const isIncluded = this.#app.brokers.some(({ subscriptions }) =>
      subscriptions.includes(subscription)
    );
    if (isIncluded) return subscription;
    throw new DeclarationError(
      `Cannot ${what} this subscription of queue "${subscription.queue.name}": the app ` +
        `"${this.#app.name}" does not include it; give the very object that it includes`,
    );
  }

  async #atDatabases(work: (driver: AppDriver) => Promise<void>): Promise<void> {
    await this.time.track(async () => {
      await Promise.all(this.#runtime.drivers.map(work));
    });
  }

  /** A stop must come to its end also where a delivery waits for what no timer drives. */
  async #passTimeUntil<T>(done: Promise<T>, stuck?: "give up"): Promise<T> {
    let pending = true;
    const settle = (): void => {
      pending = false;
    };
    done.then(settle, settle);
    const errors: unknown[] = [];
    this.time.disturb();
    for (;;) {
      try {
        await (stuck === undefined ? this.#quiet() : this.time.quiet());
        if (!pending) break;
        await this.time.step();
      } catch (error) {
        if (stuck === undefined || isEndless(error)) throw error;
        if (error instanceof FakeTimeError && !isBusyLoop(error)) this.time.giveUp();
        else errors.push(error); // of a timer's callback, or of code that loops
      }
    }
    if (errors.length > 0) throw errors[0];
    return await done;
  }

  /** As the clock's, but a reaction that never comes to rest is an error. */
  async #quiet(): Promise<void> {
    await Promise.race([this.time.quiet(), this.#starts.exceeded]);
  }

  async #leaveClock(): Promise<void> {
    await this.#clock.leave(this.#appTime);
  }

  #checkLeaks(): void {
    const leaks = leaksOf({
      timers: this.#appTime.pending,
      handlers: [...this.#inWork],
      drivers: this.#runtime.drivers,
    });
    if (leaks.length === 0) return;
    throw new LeakError(`The app "${this.#app.name}" has stopped but left:\n${leaks.join("\n")}`);
  }

  #started(what: string): RunningApp {
    if (this.#running !== undefined) return this.#running;
    throw this.#closedError(what);
  }

  #closedError(what: string): ClosedError {
    return new ClosedError(
      `Cannot ${what}: the test app "${this.#app.name}" ${this.#end}; start another`,
    );
  }
}

/** What a test app is made of. */
interface TestAppParts {
  readonly clock: TestClock;
  readonly skew?: number;
}

function isEndless(error: unknown): boolean {
  return error instanceof FakeTimeError && error.reason === "endless";
}

/** Who does something on real time, or outside the app. */
const UNKNOWN = { name: undefined, isOver: false } as const;
/** What happens without a row being written, or made claimable, that an idle loop could find. */
const UNDISTURBING: readonly AppEvent["type"][] = ["claimed", "renewed", "refused"];
const LIVE_OPTIONS: readonly string[] = ["state"];
const JOIN_OPTIONS: readonly string[] = [...LIVE_OPTIONS, "skew"];
const START_OPTIONS: readonly string[] = [...JOIN_OPTIONS, "now", "limit", "patience", "seed"];
const WAIT_OPTIONS: readonly string[] = ["within"];
const DRAIN_OPTIONS: readonly string[] = ["until", "limit", "throwErrors"];
const DISCONNECT_OPTIONS: readonly string[] = ["for"];
