/**
 * Routes the globals that tell or take time: virtual for code in the scope of a `FakeTime`, the
 * host's for everything else.
 */

import * as nodeTimers from "node:timers";
import { timeScope } from "../src/clock.ts";
import { DeclarationError } from "../src/errors.ts";
import { VirtualScope } from "./virtual_scope.ts";
import { virtualTimeout, type VirtualTimers } from "./virtual_timers.ts";

/**
 * Replaces the globals, unless they are already; each call needs its {@link removeVirtualGlobals}.
 *
 * @throws {DeclarationError} if somebody else has replaced one of them
 */
export function installVirtualGlobals(): void {
  if (installs === 0) {
    for (const each of patches) refuseForeign(each);
    for (const each of [...patches, fetchPatch]) install(each);
  }
  installs++;
}

/** Puts the originals back when called for the last time. */
export function removeVirtualGlobals(): void {
  installs--;
  if (installs > 0) return;
  for (const each of [...patches, fetchPatch]) remove(each);
}

function refuseForeign({ name, holder, key, original, replacement }: Patch): void {
  const current = Reflect.get(holder, key);
  if (current === replacement || (current === original && isGenuine(key, original))) return;
  throw new DeclarationError(
    `Cannot start a FakeTime: the global ${name} is already replaced, probably by another fake ` +
      `clock; restore it first`,
  );
}

/** Tells a fake that was there before this module: the built-in, or the module, knows better. */
function isGenuine(key: string, original: unknown): boolean {
  const genuine = (nodeTimers as Record<string, unknown>)[key];
  if (genuine !== undefined) return original === genuine;
  return key !== "Date" || /\[native code\]/.test(Function.prototype.toString.call(original));
}

function install(patch: Patch): void {
  const { holder, key, replacement: value } = patch;
  if (Reflect.get(holder, key) === value) return;
  patch.original = Reflect.get(holder, key);
  patch.descriptor = Object.getOwnPropertyDescriptor(holder, key)!;
  const { enumerable } = patch.descriptor;
  Object.defineProperty(holder, key, { value, enumerable, writable: true, configurable: true });
}

/** Leaves alone what somebody else put over the replacement since; theirs to take back. */
function remove({ holder, key, descriptor, replacement }: Patch): void {
  if (Reflect.get(holder, key) === replacement) Object.defineProperty(holder, key, descriptor);
}

function virtualScope(): VirtualScope | undefined {
  const scope = timeScope.getStore();
  return scope instanceof VirtualScope && scope.clock.active ? scope : undefined;
}

function virtualTimers(): VirtualTimers | undefined {
  return virtualScope()?.clock.timers;
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

function routedTimer(
  kind: "setTimeout" | "setInterval",
  host: SetTimer,
  delayOf: (delay: unknown) => number,
): SetTimer {
  return function calledAs(callback, given, ...args) {
    const scope = virtualScope();
    if (scope === undefined) return host(callback, given, ...args);
    const delay = delayOf(given);
    return scope.clock.timers.add({ kind, callback, delay, args, owner: scope, calledAs });
  };
}

function routedClear(clear: typeof clearTimeout): (handle?: unknown) => void {
  return (handle) => {
    const timer = virtualTimeout(handle);
    if (timer === undefined) clear(handle as number);
    else timer.close();
  };
}

/** What `promisify(setTimeout)` returns. */
function sleepFor(delay?: unknown, value?: unknown, options?: unknown): unknown {
  if (virtualScope() === undefined) return hostSleepFor(delay, value, options);
  return new Promise((resolve) => setTimeout(resolve, Number(delay), value));
}

function routedAbortTimeout(this: unknown, ...given: [number]): AbortSignal {
  const owner = virtualScope();
  const delay = Math.trunc(Number(given[0]));
  if (owner === undefined || !(delay >= 0 && delay <= Number.MAX_SAFE_INTEGER)) {
    // The original also refuses, in its own words, what is no delay.
    return Reflect.apply(hostAbortTimeout, AbortSignal, given);
  }
  const kind = "AbortSignal.timeout";
  const calledAs = routedAbortTimeout;
  const controller = new AbortController();
  const callback = (): void => controller.abort(timedOut());
  owner.clock.timers.add({ kind, callback, delay, args: [], owner, calledAs }).unref();
  return controller.signal;
}

function timedOut(): DOMException {
  return new DOMException("The operation was aborted due to timeout", "TimeoutError");
}

function routedPerformanceNow(this: Performance): number {
  return virtualTimers()?.elapsed ?? Reflect.apply(hostPerformanceNow, this, []);
}

function routedDateNow(): number {
  const timers = virtualTimers();
  return timers === undefined ? HostDate.now() : Math.floor(timers.now);
}

function RoutedDate(...given: []): Date | string {
  const values: unknown[] = given.length === 0 ? [routedDateNow()] : given;
  if (new.target !== undefined) return Reflect.construct(HostDate, values, new.target);
  return new HostDate(routedDateNow()).toString();
}

function routedFetch(...given: Parameters<typeof fetch>): Promise<Response> {
  const below = fetchPatch.original as typeof fetch;
  return virtualScope()?.track(() => below(...given)) ?? below(...given);
}

/** The methods of `Temporal.Now` that tell the time, made from an instant. */
function temporalPatches(): Patch[] {
  if (typeof Temporal === "undefined") return [];
  const holder = Temporal.Now;
  const zoned = (instant: Temporal.Instant, zone?: Temporal.TimeZoneLike) =>
    instant.toZonedDateTimeISO(zone ?? holder.timeZoneId());
  const made: Record<string, (instant: Temporal.Instant, zone?: string) => unknown> = {
    instant: (instant) => instant,
    zonedDateTimeISO: zoned,
    plainDateISO: (instant, zone) => zoned(instant, zone).toPlainDate(),
    plainDateTimeISO: (instant, zone) => zoned(instant, zone).toPlainDateTime(),
    plainTimeISO: (instant, zone) => zoned(instant, zone).toPlainTime(),
  };
  return Object.entries(made).map(([key, make]) => {
    const host = Reflect.get(holder, key) as (...args: unknown[]) => unknown;
    return patchOf(`Temporal.Now.${key}`, holder, key, (...args: [string?]) => {
      if (virtualScope() === undefined) return host(...args);
      return make(Temporal.Instant.fromEpochMilliseconds(routedDateNow()), ...args);
    });
  });
}

interface Patch {
  /** What the user knows it by. */
  readonly name: string;
  readonly holder: object;
  readonly key: string;
  readonly replacement: unknown;
  original: unknown;
  descriptor: PropertyDescriptor;
}

/** A replacement that has the original's name and length. */
function patchOf(name: string, holder: object, key: string, replacement: object): Patch {
  const original = Reflect.get(holder, key);
  for (const each of ["name", "length"] as const) {
    Object.defineProperty(replacement, each, Object.getOwnPropertyDescriptor(original, each)!);
  }
  const descriptor = Object.getOwnPropertyDescriptor(holder, key)!;
  return { name, holder, key, replacement, original, descriptor };
}

function globalPatch(key: string, replacement: object): Patch {
  return patchOf(key, globalThis, key, replacement);
}

function datePatches(): Patch[] {
  const { prototype, parse, UTC } = HostDate;
  Object.defineProperty(RoutedDate, "prototype", { value: prototype, writable: false });
  for (const [key, value] of Object.entries({ now: routedDateNow, parse, UTC })) {
    Object.defineProperty(RoutedDate, key, { value, writable: true, configurable: true });
  }
  Object.defineProperty(routedDateNow, "name", { value: "now" });
  return [
    globalPatch("Date", RoutedDate),
    patchOf("Date.prototype.constructor", prototype, "constructor", RoutedDate),
  ];
}

function timerPatches(): Patch[] {
  const sleeping = routedTimer("setTimeout", setTimeout as SetTimer, timeoutDelay);
  Object.defineProperty(sleeping, PROMISIFIED, { value: sleepFor });
  return [
    globalPatch("setTimeout", sleeping),
    globalPatch("setInterval", routedTimer("setInterval", setInterval as SetTimer, intervalDelay)),
    globalPatch("clearTimeout", routedClear(clearTimeout)),
    globalPatch("clearInterval", routedClear(clearInterval)),
  ];
}

/** `setTimeout` fires at once above this (2^31 - 1, HTML Standard, timers). */
const LONGEST_TIMEOUT = 2 ** 31 - 1;
const PROMISIFIED = Symbol.for("nodejs.util.promisify.custom");
const HostDate = Date;
const hostSleepFor = Reflect.get(setTimeout, PROMISIFIED) as (...args: unknown[]) => unknown;
const hostAbortTimeout = AbortSignal.timeout;
const hostPerformanceNow = Performance.prototype.now;

let installs = 0;
const patches: readonly Patch[] = [
  ...timerPatches(),
  ...datePatches(),
  ...temporalPatches(),
  patchOf("performance.now", Performance.prototype, "now", routedPerformanceNow),
  patchOf("AbortSignal.timeout", AbortSignal, "timeout", routedAbortTimeout),
];
/** Apart from the others: to stub `fetch` is no fake clock, and a stub is called all the same. */
const fetchPatch: Patch = globalPatch("fetch", routedFetch);
