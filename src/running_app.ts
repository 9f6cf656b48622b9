import type { App, Hook, StartedApp } from "./app.ts";
import { AppStates } from "./app_states.ts";
import type { Component } from "./component.ts";
import { checkDeadlines } from "./deadlines.ts";
import { inRealTime, now, sleep } from "./clock.ts";
import { ClosedError, DeclarationError, ShutdownError } from "./errors.ts";
import { logOf } from "./log.ts";
import type { PublishOptions } from "./publish_options.ts";
import type { Published } from "./publisher.ts";
import type { AnyQueue } from "./queue.ts";
import { RunningBroker } from "./running_broker.ts";
import type { Runtime } from "./runtime.ts";
import type { StateValue } from "./state.ts";
import type { QueueReport, SubscriptionLoop } from "./subscription_loop.ts";
import { asError } from "./thrown.ts";
import { atOnce, MOMENT, within } from "./within.ts";

/** How an app stopped. */
export interface ShutdownReport {
  /** How the deliveries of each queue ended. */
  readonly queues: readonly QueueReport[];
  /** Whether anything was still in flight when the drain ended, and was aborted. */
  readonly aborted: boolean;
  /** The components and brokers that could not be stopped or closed in time, and why. */
  readonly failures: readonly string[];
  /** How long it took, in milliseconds. */
  readonly duration: number;
}

/** In what an app is started. */
export interface StartOptions {
  readonly runtime: Runtime;
  /** States that stand in place of what hooks set. */
  readonly replaced: readonly StateValue[];
}

/** An app that has started, until it has stopped. */
export class RunningApp implements StartedApp {
  readonly finished: Promise<void>;
  readonly states: AppStates;
  readonly #app: App;
  readonly #runtime: Runtime;
  readonly #hurry = new AbortController();
  readonly #finish = Promise.withResolvers<void>();
  #started: Promise<void> = Promise.resolve();
  readonly #brokers: RunningBroker[] = [];
  #stopping: Promise<ShutdownReport> | undefined;
  #broken: { readonly error: unknown } | undefined;
  readonly #components: Component[] = [];
  readonly #abort = new AbortController();
  readonly #failures: string[] = [];
  readonly #stillStopping = new Set<string>();
  readonly #givenUp = Promise.withResolvers<never>();
  /** What is being started, for when it fails. */
  #part = "its declaration";
  #opened = false;
  #ready = false;
  #closed = false;

  /** Starts an app. What was opened is closed again if any of it fails. */
  static async start(app: App, options: StartOptions): Promise<RunningApp> {
    if (runningApps.has(app)) {
      throw new ClosedError(
        `Cannot start the app "${app.name}" again: it is running; stop it first`,
      );
    }
    const running = new RunningApp(app, options);
    runningApps.set(app, running);
    running.#started = running.#start();
    await running.#started;
    return running;
  }

  private constructor(app: App, { runtime, replaced }: StartOptions) {
    this.#app = app;
    this.#runtime = runtime;
    this.states = new AppStates(replaced);
    this.finished = this.#finish.promise;
    // Nobody need listen: run() does, a host may.
    this.finished.catch(() => {});
    this.#givenUp.promise.catch(() => {});
  }

  /** Publishes through the one broker that serves the queue. */
  publish(queue: AnyQueue, message: unknown, options?: PublishOptions): Promise<Published> {
    if (!this.#opened || this.#closed) {
      throw new ClosedError(
        `Cannot publish to queue "${queue.name}": the app "${this.#app.name}" has its databases ` +
          `open from the afterStartup hooks to the onShutdown hooks; publish in between`,
      );
    }
    return this.brokerOf(queue).publish(queue, message, options);
  }

  /**
   * The one broker that serves a queue.
   *
   * @throws {DeclarationError} if none does, or several
   */
  brokerOf(queue: AnyQueue): RunningBroker {
    const serving = this.#brokers.filter((broker) => broker.serves(queue));
    if (serving.length === 1) return serving[0]!;
    throw new DeclarationError(
      `Cannot publish to queue "${queue.name}": ${serving.length} brokers of the app ` +
        `"${this.#app.name}" create or subscribe to "${queue.inbox.table}"; ` +
        (serving.length === 0
          ? `add broker.createTables(…) or broker.include(…) for it`
          : `publish through one of them: broker.publish(…)`),
    );
  }

  stop(): Promise<ShutdownReport> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  /** Whether it runs, and has not been asked to stop. */
  get isReady(): boolean {
    return this.#ready;
  }

  /** Whether nothing has broken down. */
  get isLive(): boolean {
    return this.#broken === undefined;
  }

  /** Whether handlers are still at work, though the app has stopped: they ignore their signal. */
  get handlersLeft(): boolean {
    return this.loops.some((loop) => loop.inWork > 0);
  }

  /**
   * Ends as a process that is killed does: nothing is drained, settled or given back. Whoever calls it
   * has cut the app off from its databases. Only what listens for others is closed.
   */
  async kill(): Promise<void> {
    this.#ready = false;
    this.#closed = true;
    runningApps.delete(this.#app);
    await Promise.all([
      ...this.#brokers.map((broker) => broker.kill()),
      ...this.#components.map((component) => killComponent(component)),
    ]);
    this.#finish.reject(new ClosedError(`The app "${this.#app.name}" was killed`));
  }

  /** Waits for handlers no longer: aborts those at work at once. */
  hurry(): void {
    this.#hurry.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** The loops of all subscriptions. */
  get loops(): readonly SubscriptionLoop[] {
    return this.#brokers.flatMap(({ loops }) => loops);
  }

  async #start(): Promise<void> {
    try {
      await this.#open();
      LOG.info("App {name} is running", { name: this.#app.name });
    } catch (error) {
      this.#tellFailedStart(error);
      this.hurry();
      await this.#endWork();
      await this.#closeAll();
      runningApps.delete(this.#app);
      throw error;
    }
  }

  async #open(): Promise<void> {
    checkDeadlines(this.#app.name, this.#app.deadlines);
    this.#checkSubscriptions();
    for (const [index, hook] of this.#app.hooks.onStartup.entries()) {
      await this.#step(`hook ${index + 1} of onStartup`, this.#runHook(hook));
      this.#checkNotStopped();
    }
    for (const [index, broker] of this.#app.brokers.entries()) {
      const name = `broker ${index + 1}, ${broker.driver.name}`;
      await this.#step(name, this.#openBroker(broker));
      this.#checkNotStopped();
    }
    this.#opened = true;
    for (const loop of this.loops) loop.start((error) => this.#breakDown(error));
    for (const component of this.#app.components) {
      this.#components.push(component);
      await this.#step(`component "${component.name}"`, this.#startComponent(component));
      this.#checkNotStopped();
    }
    // From here on a stop is one like any other, once the hooks have run.
    for (const [index, hook] of this.#app.hooks.afterStartup.entries()) {
      await this.#step(`hook ${index + 1} of afterStartup`, this.#runHook(hook));
    }
    this.#ready = this.#stopping === undefined;
  }

  /** A step that hangs is given up when there is no more time for it. */
  async #step(part: string, step: Promise<void>): Promise<void> {
    this.#part = part;
    await Promise.race([step, this.#givenUp.promise]);
  }

  async #openBroker(broker: App["brokers"][number]): Promise<void> {
    const running = await RunningBroker.open(broker, this.states, this.#runtime);
    // The start may have been given up meanwhile.
    if (this.#closed) await running.close();
    else this.#brokers.push(running);
  }

  /** That a start was stopped is no failure. */
  #tellFailedStart(error: unknown): void {
    const values = { name: this.#app.name, part: this.#part, error };
    const wasStopped = error instanceof ClosedError && this.#stopping !== undefined;
    if (wasStopped) LOG.info("App {name} was stopped while it started, at {part}", values);
    else LOG.error("App {name} did not start, {part} failed, the rest is closed: {error}", values);
  }

  async #startComponent(component: Component): Promise<void> {
    try {
      await component.start?.(this.#app);
    } catch (cause) {
      const { message } = asError(cause, "start");
      throw new DeclarationError(
        `Cannot start the app "${this.#app.name}": its component "${component.name}" did not start: ` +
          message,
        { cause },
      );
    }
  }

  #checkSubscriptions(): void {
    const all = this.#app.brokers.flatMap(({ subscriptions }) => subscriptions);
    const twice = all.find((subscription, index) => all.indexOf(subscription) !== index);
    if (twice === undefined) return;
    throw new DeclarationError(
      `Cannot start the app "${this.#app.name}": two of its brokers include the same subscription of ` +
        `queue "${twice.queue.name}"; include it in one`,
    );
  }

  #checkNotStopped(): void {
    if (this.#stopping === undefined) return;
    throw new ClosedError(
      `Cannot start the app "${this.#app.name}" to its end: it was stopped meanwhile`,
    );
  }

  /** A loop that ends by an error of its own takes the app down, so that it is noticed. */
  #breakDown(error: unknown): void {
    LOG.fatal("App {name} stops, a subscription broke down: {error}", {
      name: this.#app.name,
      error,
    });
    this.#broken ??= { error };
    void this.stop();
  }

  async #stop(): Promise<ShutdownReport> {
    const start = now();
    this.#ready = false;
    LOG.info("App {name} is stopping", { name: this.#app.name });
    if (!await this.#hasStarted()) {
      return { queues: [], aborted: false, failures: this.#failures, duration: now() - start };
    }
    this.#ready = false;
    await this.#workOn();
    const { drain, closeTimeout } = this.#app.deadlines;
    const end = now() + drain;
    await this.#runShutdownHooks("onShutdown", () => this.#isInHurry ? HURRIED_HOOKS : end - now());
    await this.#endWork(Math.max(0, end - now()));
    const queues = this.loops.map(({ report }) => report);
    await this.#closeAll();
    const hooksEnd = now() + closeTimeout * HOOKS;
    await this.#runShutdownHooks("afterShutdown", () => hooksEnd - now());
    runningApps.delete(this.#app);
    const report = {
      queues,
      aborted: this.#abort.signal.aborted,
      failures: this.#failures,
      duration: now() - start,
    };
    LOG.info("App {name} has stopped: {report}", { name: this.#app.name, report });
    if (this.#broken === undefined) this.#finish.resolve();
    else this.#finish.reject(this.#broken.error);
    return report;
  }

  /** Readiness is false already, and whoever has not noticed yet is served all the same. */
  async #workOn(): Promise<void> {
    const { preStop } = this.#app.deadlines;
    if (preStop > 0) await sleep(preStop, this.#hurry.signal);
  }

  get #isInHurry(): boolean {
    return this.#hurry.signal.aborted;
  }

  /** A start that is under way when the app is stopped fails, and closes what it has opened. */
  async #hasStarted(): Promise<boolean> {
    const started = this.#started.then(() => true, () => false);
    if (!await within(this.#app.deadlines.drain, started, this.#hurry.signal)) {
      this.#givenUp.reject(
        new ClosedError(
          `Cannot start the app "${this.#app.name}" to its end: it was stopped meanwhile, and ` +
            `${this.#part} has not come to an end`,
        ),
      );
    }
    return await started;
  }

  /** All intake ends together; then drain, abort, and free what is left. Leases are renewed meanwhile. */
  async #endWork(drain = 0): Promise<void> {
    const { abortTimeout } = this.#app.deadlines;
    // A claim that the database does not answer must not keep the app from stopping.
    const intake = this.loops.map((loop) => loop.stopIntake());
    const components = this.#components.map((component) => this.#stopComponent(component));
    const work = Promise.all([...intake, ...components]).then(() => this.#idle());
    if (await within(drain, work, this.#hurry.signal) || await atOnce(work)) return;
    const reason = new ShutdownError(
      `The app "${this.#app.name}" is stopping and its handlers may not go on; ` +
        `heed delivery.signal, or give the app a longer drain than ` +
        `${this.#app.deadlines.drain} ms`,
    );
    this.#abort.abort(reason);
    for (const loop of this.loops) loop.abort(reason);
    // What does not heed its signal is freed while there is time for it.
    if (await within(abortTimeout * HEEDING, work)) return;
    const abandoned = Promise.all(this.loops.map((loop) => loop.abandon()));
    if (await within(abortTimeout * (1 - HEEDING), Promise.all([abandoned, ...components]))) return;
    for (const name of this.#stillStopping) {
      this.#fail(`Component "${name}" was not stopped`, new Error("it took too long"));
    }
  }

  async #stopComponent(component: Component): Promise<void> {
    const { name } = component;
    this.#stillStopping.add(name);
    try {
      await component.stop?.(this.#abort.signal);
    } catch (error) {
      this.#fail(`Component "${name}" was not stopped`, error);
    } finally {
      this.#stillStopping.delete(name);
    }
  }

  #idle(): Promise<unknown> {
    return Promise.all(this.loops.map((loop) => loop.idle()));
  }

  /**
   * Components first, then brokers, the last that was started first. What hangs does not keep the
   * others from being closed.
   */
  async #closeAll(): Promise<void> {
    this.#closed = true;
    const most = this.#app.deadlines.closeTimeout * (1 - HOOKS) / 2;
    const componentsEnd = now() + most;
    for (const component of this.#components.toReversed()) {
      const close = async () => await component.close?.();
      await this.#close(`Component "${component.name}"`, close, componentsEnd);
    }
    const brokersEnd = now() + most;
    for (const broker of this.#brokers.toReversed()) {
      await this.#close("A broker", () => broker.close(), brokersEnd);
    }
  }

  async #close(what: string, close: () => Promise<void>, end: number): Promise<void> {
    const closing = close().catch((error) => this.#fail(`${what} was not closed`, error));
    if (await within(Math.max(MOMENT, end - now()), closing)) return;
    this.#fail(`${what} was not closed`, new Error("it took too long"));
  }

  /** A shutdown goes on, whatever fails. */
  #fail(what: string, thrown: unknown): void {
    const error = asError(thrown, "It");
    this.#failures.push(`${what}: ${error.message}`);
    LOG.error("{what} of app {name}: {error}", { what, name: this.#app.name, error });
  }

  #runHook(hook: Hook): Promise<void> {
    return inRealTime(async () => await hook(this.#app));
  }

  /** A hook that fails, or takes too long, is logged, and the shutdown goes on. */
  async #runShutdownHooks(
    point: "onShutdown" | "afterShutdown",
    timeLeft: () => number,
  ): Promise<void> {
    for (const hook of this.#app.hooks[point]) {
      const running = this.#runHook(hook)
        .catch((error) => this.#fail(`A hook of ${point} failed`, error));
      if (await within(Math.max(MOMENT, timeLeft()), running)) continue;
      this.#fail(`A hook of ${point} is not waited for`, new Error("it took too long"));
    }
  }
}

/** What hangs, or fails, dies with its process. */
async function killComponent(component: Component): Promise<void> {
  const stopped = async () => {
    await component.stop?.(AbortSignal.abort(new ShutdownError("Its process was killed")));
    await component.close?.();
  };
  await within(LONGEST_KILL, stopped().catch(() => {}));
}

/** The running side of each app that has started. */
export const runningApps: WeakMap<App, RunningApp> = new WeakMap();

/** The part of abortTimeout in which handlers may settle by themselves. */
const HEEDING = 0.8;
/** The part of closeTimeout that is left for the hooks of afterShutdown. */
const HOOKS = 0.2;
/** How long a component may take to go with its process, in milliseconds. */
const LONGEST_KILL = 1_000;
/** How long hooks of onShutdown may take after a second signal, in milliseconds. */
const HURRIED_HOOKS = 500;
const LOG = logOf("app");
