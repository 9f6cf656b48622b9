/**
 * Routes the globals that tell or take time: virtual for code in the scope of a `FakeTime`, the
 * host's for everything else.
 */

import { syncBuiltinESMExports } from "node:module";
import { currentScope } from "./current_scope.ts";
import { Patch } from "./patch.ts";
import { timerPatches } from "./timer_patches.ts";

/**
 * Replaces the globals, unless they are already; each call needs its {@link removeVirtualGlobals}.
 *
 * @throws {DeclarationError} if somebody else has replaced one of them
 */
export function installVirtualGlobals(): void {
  if (installs === 0) {
    for (const each of patches) each.refuseForeign();
    for (const each of [...patches, fetchPatch]) each.install();
    syncBuiltinESMExports();
  }
  installs++;
}

/** Puts the originals back when called for the last time. */
export function removeVirtualGlobals(): void {
  installs--;
  if (installs > 0) return;
  for (const each of [...patches, fetchPatch]) each.remove();
  syncBuiltinESMExports();
}

function routedAbortTimeout(this: unknown, ...given: [number]): AbortSignal {
  const owner = currentScope();
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
  const scope = currentScope();
  if (scope === undefined) return Reflect.apply(hostPerformanceNow, this, []);
  scope.clock.busyLoop.count(scope.name, routedPerformanceNow);
  return scope.clock.timers.elapsed;
}

function routedDateNow(): number {
  return presentFor(routedDateNow);
}

function RoutedDate(...given: []): Date | string {
  const values: unknown[] = given.length === 0 ? [presentFor(RoutedDate)] : given;
  if (new.target !== undefined) return Reflect.construct(HostDate, values, new.target);
  return new HostDate(presentFor(RoutedDate)).toString();
}

function presentFor(calledAs: (...args: never[]) => unknown): number {
  const scope = currentScope();
  if (scope === undefined) return HostDate.now();
  scope.clock.busyLoop.count(scope.name, calledAs);
  return Math.floor(scope.now);
}

function routedFetch(...given: Parameters<typeof fetch>): Promise<Response> {
  const below = fetchPatch.original as typeof fetch;
  return currentScope()?.track(() => below(...given)) ?? below(...given);
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
    const routed = (...args: [string?]): unknown => {
      if (currentScope() === undefined) return host(...args);
      return make(Temporal.Instant.fromEpochMilliseconds(presentFor(routed)), ...args);
    };
    return new Patch(`Temporal.Now.${key}`, holder, key, routed);
  });
}

function globalPatch(key: string, replacement: object): Patch {
  return new Patch(`the global ${key}`, globalThis, key, replacement);
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
    new Patch("Date.prototype.constructor", prototype, "constructor", RoutedDate),
  ];
}

const HostDate = Date;
const hostAbortTimeout = AbortSignal.timeout;
const hostPerformanceNow = Performance.prototype.now;

let installs = 0;
const patches: readonly Patch[] = [
  ...timerPatches(),
  ...datePatches(),
  ...temporalPatches(),
  new Patch("performance.now", Performance.prototype, "now", routedPerformanceNow),
  new Patch("AbortSignal.timeout", AbortSignal, "timeout", routedAbortTimeout),
];
/** Apart from the others: to stub `fetch` is no fake clock, and a stub is called all the same. */
const fetchPatch: Patch = globalPatch("fetch", routedFetch);
