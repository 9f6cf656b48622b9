import nodeTimers from "node:timers";
import { currentScope } from "./current_scope.ts";
import { Patch } from "./patch.ts";
import { sleepPatches, virtualSleep } from "./sleep_patches.ts";
import { virtualTimeout } from "./virtual_timers.ts";

/**
 * Routes the timers: those of the globals, and those of `node:timers` and `node:timers/promises`,
 * which Node's imports follow (`syncBuiltinESMExports`), and Deno's `require` only.
 */
export function timerPatches(): Patch[] {
  return [
    ...callbackPatches("the global ", globalThis),
    ...callbackPatches("node:timers' ", nodeTimers),
    ...sleepPatches(),
  ];
}

/** The delay `setTimeout` makes of its argument: whole, at least 0, and 1 if it is too long. */
export function timeoutDelay(delay: unknown): number {
  const whole = Math.trunc(Number(delay));
  if (!(whole > 0)) return 0;
  return whole > LONGEST_TIMEOUT ? 1 : whole;
}

/** As {@link timeoutDelay}, but at least 1: an interval of 0 would never leave its instant. */
export function intervalDelay(delay: unknown): number {
  return Math.max(1, timeoutDelay(delay));
}

type Callback = (...args: unknown[]) => unknown;
type SetTimer = (callback: Callback, delay?: unknown, ...args: unknown[]) => unknown;
type ClearTimer = (handle?: unknown) => void;

interface TimerFunctions {
  readonly setTimeout: unknown;
  readonly setInterval: unknown;
  readonly clearTimeout: unknown;
  readonly clearInterval: unknown;
}

function callbackPatches(owner: string, holder: TimerFunctions): Patch[] {
  const { setTimeout, setInterval, clearTimeout, clearInterval } = holder;
  const sleeping = routedTimer("setTimeout", setTimeout as SetTimer, timeoutDelay);
  Object.defineProperty(sleeping, PROMISIFIED, { value: promisified(setTimeout as SetTimer) });
  const replacements = {
    setTimeout: sleeping,
    setInterval: routedTimer("setInterval", setInterval as SetTimer, intervalDelay),
    clearTimeout: routedClear(clearTimeout as ClearTimer),
    clearInterval: routedClear(clearInterval as ClearTimer),
  };
  return Object.entries(replacements).map(([key, replacement]) =>
    new Patch(owner + key, holder, key, replacement)
  );
}

function routedTimer(
  kind: "setTimeout" | "setInterval",
  host: SetTimer,
  delayOf: (delay: unknown) => number,
): SetTimer {
  return function calledAs(callback, given, ...args) {
    const scope = currentScope();
    if (scope === undefined) return host(callback, given, ...args);
    const delay = delayOf(given);
    return scope.clock.timers.add({ kind, callback, delay, args, owner: scope, calledAs });
  };
}

function routedClear(clear: ClearTimer): ClearTimer {
  return (handle) => {
    const timer = virtualTimeout(handle);
    if (timer === undefined) clear(handle);
    else timer.close();
  };
}

/** What `promisify(setTimeout)` returns. */
function promisified(setTimeout: SetTimer): (...args: unknown[]) => unknown {
  const host = Reflect.get(setTimeout, PROMISIFIED) as (...args: unknown[]) => unknown;
  return (...args) => currentScope() === undefined ? host(...args) : virtualSleep(...args);
}

/** `setTimeout` fires at once above this (2^31 - 1, HTML Standard, timers). */
const LONGEST_TIMEOUT = 2 ** 31 - 1;
const PROMISIFIED = Symbol.for("nodejs.util.promisify.custom");
