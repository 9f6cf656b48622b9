import nodeSleeps from "node:timers/promises";
import { currentScope } from "./current_scope.ts";
import { Patch } from "./patch.ts";

/** Routes what `node:timers/promises` exports, but for `setImmediate`. */
export function sleepPatches(): Patch[] {
  const scheduler: object = Object.getPrototypeOf(nodeSleeps.scheduler);
  const hostWait = Reflect.get(scheduler, "wait") as Sleep;
  function wait(this: unknown, delay?: unknown, options?: unknown): unknown {
    if (currentScope() === undefined) return Reflect.apply(hostWait, this, [delay, options]);
    return virtualSleep(delay, undefined, options);
  }
  return [
    new Patch("setTimeout of node:timers/promises", nodeSleeps, "setTimeout", routedSleep),
    new Patch("setInterval of node:timers/promises", nodeSleeps, "setInterval", routedTicks),
    new Patch("scheduler.wait of node:timers/promises", scheduler, "wait", wait),
  ];
}

/**
 * `setTimeout` of `node:timers/promises`, on the virtual clock of the code that calls it.
 *
 * @throws the runtime's own `AbortError` once the signal of the options is aborted
 */
export function virtualSleep(
  delay?: unknown,
  value?: unknown,
  options?: unknown,
): Promise<unknown> {
  const { signal, ref = true } = optionsOf(options);
  if (signal?.aborted) return aborted(signal);
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve(value);
    }, Number(delay));
    const abort = (): void => {
      clearTimeout(timer);
      resolve(aborted(signal!));
    };
    if (!ref) unref(timer);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** `setInterval` of `node:timers/promises`: a tick that nobody waited for is not lost. */
async function* virtualTicks(
  delay?: unknown,
  value?: unknown,
  options?: unknown,
): AsyncGenerator<unknown> {
  const { signal, ref = true } = optionsOf(options);
  let ticks = 0;
  let wake = (): void => {};
  const tick = (): void => {
    ticks++;
    wake();
  };
  const stop = (): void => wake();
  const timer = setInterval(tick, Number(delay));
  if (!ref) unref(timer);
  signal?.addEventListener("abort", stop, { once: true });
  try {
    for (;;) {
      if (signal?.aborted) await aborted(signal);
      if (ticks === 0) await new Promise<void>((resolve) => wake = resolve);
      for (; ticks > 0; ticks--) yield value;
    }
  } finally {
    clearInterval(timer);
    signal?.removeEventListener("abort", stop);
  }
}

function routedSleep(...args: Parameters<Sleep>): unknown {
  return currentScope() === undefined ? hostSleep(...args) : virtualSleep(...args);
}

function routedTicks(...args: Parameters<Sleep>): unknown {
  return currentScope() === undefined ? hostTicks(...args) : virtualTicks(...args);
}

/** Rejects as the runtime does: by its own timer, which the signal refuses at once. */
function aborted(signal: AbortSignal): Promise<unknown> {
  return hostSleep(0, undefined, { signal }) as Promise<unknown>;
}

function optionsOf(options: unknown): { readonly signal?: AbortSignal; readonly ref?: boolean } {
  return options ?? {};
}

/** A virtual timer is an object, whatever the types of the runtime say. */
function unref(timer: unknown): void {
  (timer as { unref(): void }).unref();
}

type Sleep = (delay?: unknown, value?: unknown, options?: unknown) => unknown;

const hostSleep = nodeSleeps.setTimeout as Sleep;
const hostTicks = nodeSleeps.setInterval as Sleep;
