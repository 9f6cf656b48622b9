import type { Broker } from "./broker.ts";
import type { Component } from "./component.ts";
import { type DeadlineOptions, type Deadlines, readDeadlines } from "./deadlines.ts";
import { ClosedError, DeclarationError } from "./errors.ts";
import { healthResponse } from "./health.ts";
import { type HttpHandler, HttpService, type ServeOptions } from "./http_service.ts";
import type { PublishOptions } from "./publish_options.ts";
import type { Published } from "./publisher.ts";
import type { AnyQueue, Queue } from "./queue.ts";
import { refuseUnknownOptions } from "./refuse_unknown_options.ts";
import { RunningApp, runningApps, type ShutdownReport } from "./running_app.ts";
import { PRODUCTION } from "./runtime.ts";
import { Schedule, type ScheduleOptions } from "./schedule.ts";
import type { StateKey } from "./state.ts";

/** What an app is called, and how long it takes to stop. */
export interface AppOptions extends DeadlineOptions {
  /** The service's name. */
  readonly name: string;
  /** The service's version. */
  readonly version?: string;
}

/** Something to be done at a point of the app's life. An error of a startup hook ends the start. */
export type Hook = (app: App) => void | Promise<void>;

/** The points of an app's life. */
export type HookPoint = "onStartup" | "afterStartup" | "onShutdown" | "afterShutdown";

/** A handle on an app that has started. */
export interface StartedApp extends AsyncDisposable {
  /** Resolves when the app has stopped; rejects if it stopped because a subscription broke down. */
  readonly finished: Promise<void>;
  /** Stops the app, see `App.stop`. */
  stop(): Promise<ShutdownReport>;
}

/** A service: its brokers and its hooks, and the one path by which they start and stop. */
export class App {
  /** The service's name. */
  readonly name: string;
  /** The service's version. */
  readonly version: string | undefined;
  /** How long each phase of a stop may take. */
  readonly deadlines: Deadlines;
  /** The parts beside the brokers, in the order in which they are started. */
  readonly components: Component[] = [];
  /** The brokers, in the order in which they are opened. */
  readonly brokers: Broker[] = [];
  /** The hooks of each point, in order. */
  readonly hooks: Readonly<Record<HookPoint, Hook[]>> = {
    onStartup: [],
    afterStartup: [],
    onShutdown: [],
    afterShutdown: [],
  };

  /**
   * Declares an app; nothing runs yet.
   *
   * @throws {DeclarationError} if an option is unknown, or the name is missing
   */
  constructor(options: AppOptions) {
    refuseUnknownOptions("Cannot make an app", options, OPTIONS);
    if (typeof options?.name !== "string" || options.name === "") {
      throw new DeclarationError(`Cannot make an app without a name: give new App({ name: "…" })`);
    }
    this.name = options.name;
    this.version = options.version;
    this.deadlines = readDeadlines(options);
  }

  /** Adds a broker. `configure`, if given, is called with it at once. */
  withBroker<B extends Broker>(broker: B, configure?: (broker: B) => void): this {
    configure?.(broker);
    this.brokers.push(broker);
    return this;
  }

  /**
   * Adds a part that starts and stops with the app.
   *
   * @throws {DeclarationError} if it has no name, or the app has one of this name
   */
  withComponent(component: Component): this {
    const { name } = Object(component) as Partial<Component>;
    if (typeof name !== "string" || name === "") {
      throw new DeclarationError(
        `Cannot add a component without a name to the app "${this.name}": give { name, start, stop }`,
      );
    }
    if (this.components.some((other) => other.name === name)) {
      throw new DeclarationError(
        `Cannot add the component "${name}" to the app "${this.name}": it has one of this name`,
      );
    }
    this.components.push(component);
    return this;
  }

  /**
   * Serves HTTP while the app runs. When it stops, no new connection is accepted, requests in flight
   * finish, and one that is still in flight when `drain` ends gets 503 with `Retry-After`. `/livez` and
   * `/readyz` are answered too.
   *
   * @throws {TypeError} at start, where there is no `Deno.serve`
   */
  serve(options: ServeOptions, handler: HttpHandler): this {
    return this.withComponent(new HttpService(options, handler));
  }

  /**
   * Publishes a message at each slot of a cron pattern, by one of the service's processes.
   *
   * @param pattern minute, hour, day of the month, month, day of the week; with six parts the first is
   * the second, see croner
   * @param message the message, or a function that makes it for a slot
   * @throws {DeclarationError} if nothing would remember which slots were published, or the app has a
   * schedule of this name
   */
  schedule<In>(
    pattern: string,
    queue: Queue<In, unknown>,
    message: NoInfer<In> | ((slot: Date) => NoInfer<In>),
    options: ScheduleOptions = {},
  ): this {
    refuseUnknownOptions(`Cannot schedule by "${pattern}"`, options, SCHEDULE_OPTIONS);
    const name = options.name ?? `${queue.name} ${pattern}`;
    const declared = { ...options, name, pattern, queue: queue as AnyQueue, message };
    return this.withComponent(new Schedule(declared));
  }

  /** Whether nothing has broken down: what `/livez` tells. */
  get isLive(): boolean {
    return runningApps.get(this)?.isLive ?? true;
  }

  /** Whether it runs, and has not been asked to stop: what `/readyz` tells. */
  get isReady(): boolean {
    return runningApps.get(this)?.isReady ?? false;
  }

  /**
   * The answer to a probe of `/livez` or `/readyz`, for a server of your own; `undefined` for any other
   * request.
   */
  health(request: Request): Response | undefined {
    return healthResponse(request, this);
  }

  /** Before anything is opened: make what handlers need, and `set` it. */
  onStartup(hook: Hook): this {
    return this.#addHook("onStartup", hook);
  }

  /** When everything runs. */
  afterStartup(hook: Hook): this {
    return this.#addHook("afterStartup", hook);
  }

  /** When the app has been asked to stop, while it is still connected. */
  onShutdown(hook: Hook): this {
    return this.#addHook("onShutdown", hook);
  }

  /** When everything is closed. */
  afterShutdown(hook: Hook): this {
    return this.#addHook("afterShutdown", hook);
  }

  /**
   * Sets what a key stands for, for handlers of this run.
   *
   * @throws {ClosedError} if the app is not running
   */
  set<T>(key: StateKey<T>, value: T): void {
    this.#running(`set state "${key.name}"`).states.set(key, value);
  }

  /**
   * What a key stands for.
   *
   * @throws {DeclarationError} if it has not been set
   */
  get<T>(key: StateKey<T>): T {
    return this.#running(`get state "${key.name}"`).states.get(key);
  }

  /**
   * Publishes through the broker that creates the queue's table or subscribes to it.
   *
   * @throws {ClosedError} if the app is not running
   * @throws {DeclarationError} if no broker does, or more than one, or if an option needs a role that
   * the table lacks
   * @throws {PayloadError} if the message cannot be stored, before anything is written
   * @throws {PublishError} if the database refuses it
   */
  async publish<In>(
    queue: Queue<In, unknown>,
    message: NoInfer<In>,
    options?: PublishOptions,
  ): Promise<Published> {
    return await this.#running(`publish to queue "${queue.name}"`)
      .publish(queue as AnyQueue, message, options);
  }

  /**
   * Starts: startup hooks, brokers in order (connected, tables created and checked), subscriptions.
   * What was opened is closed again if any of it fails.
   *
   * @throws {SchemaError} with every problem, if tables are not as described
   * @throws {DriverError} if a database cannot be opened
   * @throws {ClosedError} if the app is running already
   */
  start(): Promise<StartedApp> {
    return RunningApp.start(this, { runtime: PRODUCTION, replaced: [] });
  }

  /**
   * Stops, and resolves when nothing of the app is left: it is not ready any more, and works on for
   * `preStop`; intake ends, handlers and requests finish within `drain`, the others are aborted and
   * settle within `abortTimeout`, databases are closed. A hook of the app must not wait for it: it
   * waits for the hook.
   */
  async stop(): Promise<ShutdownReport> {
    return await this.#running("stop").stop();
  }

  /**
   * Runs until SIGTERM or SIGINT, then stops. A second signal skips to the abort, a third exits.
   * The exit code is 1 if a handler was aborted, else 0. If a handler is still at work when all else
   * has stopped, because it ignores its signal, the process is ended.
   */
  async run(): Promise<void> {
    // Loaded here, since it would cost every program milliseconds at its start.
    const { runUntilSignal } = await import("./run_until_signal.ts");
    await runUntilSignal(this);
  }

  #addHook(point: HookPoint, hook: Hook): this {
    this.hooks[point].push(hook);
    return this;
  }

  #running(what: string): RunningApp {
    const running = runningApps.get(this);
    if (running !== undefined) return running;
    throw new ClosedError(`Cannot ${what}: the app "${this.name}" is not running; start it first`);
  }
}

const SCHEDULE_OPTIONS: readonly string[] = ["name", "timeZone", "scheduleTable", "catchUp"];
const OPTIONS: readonly string[] = [
  "name",
  "version",
  "preStop",
  "drain",
  "abortTimeout",
  "closeTimeout",
  "grace",
];
