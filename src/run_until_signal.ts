import process from "node:process";
import type { App } from "./app.ts";
import { ClosedError } from "./errors.ts";
import { RunningApp, runningApps } from "./running_app.ts";
import { PRODUCTION } from "./runtime.ts";

/**
 * Starts an app and stops it at SIGTERM or SIGINT, also while it starts. A second signal aborts its
 * handlers, a third ends the process.
 */
export async function runUntilSignal(app: App): Promise<void> {
  let signals = 0;
  let stopping: Promise<void> | undefined;
  const onSignal = (): void => {
    signals++;
    if (signals === 1) stopping = stop(app);
    else if (signals === 2) runningApps.get(app)?.hurry();
    else process.exit(1);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  try {
    const running = await RunningApp.start(app, { runtime: PRODUCTION, replaced: [] });
    await running.finished;
  } catch (error) {
    // A start that a signal has ended is no failure.
    if (stopping === undefined || !(error instanceof ClosedError)) throw error;
  } finally {
    await stopping;
    for (const signal of SIGNALS) process.off(signal, onSignal);
  }
}

async function stop(app: App): Promise<void> {
  const running = runningApps.get(app);
  const report = await running?.stop();
  if (report?.aborted) process.exitCode = 1;
  // What ignores its signal, or could not be closed, would keep the process alive.
  const isLeft = report !== undefined && (report.aborted || report.failures.length > 0);
  if (running?.handlersLeft || isLeft) process.exit();
}

const SIGNALS = ["SIGTERM", "SIGINT"] as const;
