import type { App } from "./app.ts";

/** A part of an app that starts and stops with it, beside its brokers. */
export interface Component {
  /** What it is called in logs and in the shutdown report. */
  readonly name: string;
  /** Starts it, when brokers are connected and subscriptions run. An error ends the start. */
  start?(app: App): void | Promise<void>;
  /**
   * Takes nothing new in, and resolves when what is in flight has finished, while everything it may
   * need still works.
   *
   * @param signal aborts, with a `ShutdownError`, when what is in flight may not go on
   */
  stop?(signal: AbortSignal): void | Promise<void>;
  /** Ends what is left of it, after the work of the whole app has ended. */
  close?(): void | Promise<void>;
}
