import process from "node:process";
import type { RunningApp } from "./running_app.ts";

/**
 * Stops an app at SIGTERM or SIGINT. A second signal aborts its handlers, a third ends the process.
 */
export async function runUntilSignal(app: RunningApp): Promise<void> {
  let signals = 0;
  const onSignal = (): void => {
    signals++;
    if (signals === 1) void stop(app);
    else if (signals === 2) app.hurry();
    else process.exit(1);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  try {
    await app.finished;
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  }
}

async function stop(app: RunningApp): Promise<void> {
  const { queues } = await app.stop();
  if (queues.some(({ aborted }) => aborted > 0)) process.exitCode = 1;
}

const SIGNALS = ["SIGTERM", "SIGINT"] as const;
