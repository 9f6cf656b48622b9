import type { App, Hook, StartedApp } from "./app.ts";
import { AppStates } from "./app_states.ts";
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

/** How an app stopped. */
export interface ShutdownReport {
  /** How the deliveries of each queue ended. */
  readonly queues: readonly QueueReport[];
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
  #opened = false;
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
  }

  /** Publishes through the one broker that serves the queue. */
  publish(queue: AnyQueue, message: unknown, options?: PublishOptions): Promise<Published> {
    if (!this.#opened || this.#closed) {
      throw new ClosedError(
        `Cannot publish to queue "${queue.name}": the app "${this.#app.name}" has its databases ` +
          `open from the afterStartup hooks to the onShutdown hooks; publish in between`,
      );
    }
    const serving = this.#brokers.filter((broker) => broker.serves(queue));
    if (serving.length === 1) return serving[0]!.publish(queue, message, options);
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

  /** Whether handlers are still at work, though the app has stopped: they ignore their signal. */
  get handlersLeft(): boolean {
    return this.#loops.some((loop) => loop.inWork > 0);
  }

  /** Waits for handlers no longer: aborts those at work at once. */
  hurry(): void {
    this.#hurry.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  get #loops(): readonly SubscriptionLoop[] {
    return this.#brokers.flatMap(({ loops }) => loops);
  }

  async #start(): Promise<void> {
    try {
      await this.#open();
      LOG.info("App {name} is running", { name: this.#app.name });
    } catch (error) {
      this.hurry();
      await this.#endWork();
      await this.#closeBrokers();
      runningApps.delete(this.#app);
      throw error;
    }
  }

  async #open(): Promise<void> {
    this.#checkSubscriptions();
    for (const hook of this.#app.hooks.onStartup) {
      await this.#runHook(hook);
      this.#checkNotStopped();
    }
    for (const broker of this.#app.brokers) {
      this.#brokers.push(await RunningBroker.open(broker, this.states, this.#runtime));
      this.#checkNotStopped();
    }
    this.#opened = true;
    for (const loop of this.#loops) loop.start((error) => this.#breakDown(error));
    // From here on a stop is one like any other, once the hooks have run.
    for (const hook of this.#app.hooks.afterStartup) await this.#runHook(hook);
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
    if (!await this.#hasStarted()) return { queues: [], duration: now() - start };
    LOG.info("App {name} is stopping", { name: this.#app.name });
    await this.#runShutdownHooks("onShutdown");
    await this.#endWork();
    const queues = this.#loops.map(({ report }) => report);
    await this.#closeBrokers();
    await this.#runShutdownHooks("afterShutdown");
    runningApps.delete(this.#app);
    const report = { queues, duration: now() - start };
    LOG.info("App {name} has stopped: {report}", { name: this.#app.name, report });
    if (this.#broken === undefined) this.#finish.resolve();
    else this.#finish.reject(this.#broken.error);
    return report;
  }

  /** A start that is under way when the app is stopped fails, and closes what it has opened. */
  #hasStarted(): Promise<boolean> {
    return this.#started.then(() => true, () => false);
  }

  async #endWork(): Promise<void> {
    const { drain, abortTimeout } = this.#app;
    // A claim that the database does not answer must not keep the app from stopping.
    const intake = Promise.all(this.#loops.map((loop) => loop.stopIntake()));
    await within(drain + abortTimeout, intake, this.#hurry.signal);
    await this.#finishHandlers();
  }

  /** Drain, then abort, then free what is left. Leases are renewed all the while. */
  async #finishHandlers(): Promise<void> {
    const { drain, abortTimeout } = this.#app;
    if (await within(drain, this.#idle(), this.#hurry.signal)) return;
    const reason = new ShutdownError(
      `The app "${this.#app.name}" is stopping and its handlers may not go on; ` +
        `heed delivery.signal, or give the app a longer drain than ${drain} ms`,
    );
    for (const loop of this.#loops) loop.abort(reason);
    if (await within(abortTimeout, this.#idle())) return;
    await within(abortTimeout, Promise.all(this.#loops.map((loop) => loop.abandon())));
  }

  #idle(): Promise<unknown> {
    return Promise.all(this.#loops.map((loop) => loop.idle()));
  }

  async #closeBrokers(): Promise<void> {
    this.#closed = true;
    for (const broker of this.#brokers.toReversed()) {
      try {
        await broker.close();
      } catch (error) {
        LOG.error("A broker of app {name} was not closed: {error}", {
          name: this.#app.name,
          error,
        });
      }
    }
  }

  #runHook(hook: Hook): Promise<void> {
    return inRealTime(async () => await hook(this.#app));
  }

  /** A hook that fails is logged, and the shutdown goes on. */
  async #runShutdownHooks(point: "onShutdown" | "afterShutdown"): Promise<void> {
    for (const hook of this.#app.hooks[point]) {
      try {
        await this.#runHook(hook);
      } catch (error) {
        LOG.error("A hook of {point} of app {name} failed: {error}", {
          point,
          name: this.#app.name,
          error,
        });
      }
    }
  }
}

/** Whether the work has ended by then, or before anybody is in a hurry. */
async function within(ms: number, work: Promise<unknown>, hurry?: AbortSignal): Promise<boolean> {
  const ended = new AbortController();
  const signal = AbortSignal.any([ended.signal, ...(hurry === undefined ? [] : [hurry])]);
  let done = false;
  const end = work.then(() => {
    done = true;
    ended.abort();
  });
  await Promise.race([end, sleep(ms, signal)]);
  return done;
}

/** The running side of each app that has started. */
export const runningApps: WeakMap<App, RunningApp> = new WeakMap();

const LOG = logOf("app");
