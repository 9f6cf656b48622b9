/**
 * The only place from which Holdfast takes time, timers and random numbers.
 *
 * Every call looks the globals up anew, so that whoever replaces them, the test harness or a fake
 * clock of the user's own, is seen.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Steps } from "./driver/steps.ts";

/** A database that may know why a statement takes so long. */
export interface LockObserver {
  /**
   * How many statements wait there for locks that other sessions hold; `undefined` if it cannot
   * tell. It takes real time, and is itself not counted as in flight.
   */
  countLockWaits(): Promise<number | undefined>;
}

/** What a test harness puts around an app to see, and to steer, how its time passes. */
export interface TimeScope {
  /**
   * Runs I/O outside the scope, in real time, and counts it as in flight until it settles.
   *
   * @param text what of a database it is, as SQL; absent for any other I/O
   */
  track<T>(io: () => Promise<T>, text?: string, database?: LockObserver): Promise<T>;
  /**
   * Runs one delivery's handler in a scope of its own, so that its timers can be told apart.
   *
   * @param database where the handler may wait for locks
   */
  delivery<T>(name: string, handle: () => Promise<T>, database?: LockObserver): Promise<T>;
  /** A number in [0, 1), the same sequence in every run. */
  random(): number;
  /** Makes a timer of Holdfast's own, which can so be told from those of a service. */
  after?(ms: number, callback: () => void): Timer;
  /** What the database's clock says, from which the host's own may differ. */
  databaseNow(): number;
}

/** The scope the running code is in; `undefined` in production. */
export const timeScope: AsyncLocalStorage<TimeScope | undefined> = new AsyncLocalStorage();

/** A timer that has not fired yet. */
export interface Timer {
  cancel(): void;
}

/** The host clock: milliseconds since 1970, UTC. */
export function now(): number {
  return Date.now();
}

/**
 * What statements take for the present where they do not ask the database: the host's clock, unless a
 * test harness has set the two apart. Milliseconds since 1970, UTC.
 */
export function databaseNow(): number {
  return timeScope.getStore()?.databaseNow() ?? now();
}

/** Milliseconds on a clock that never steps. */
export function monotonic(): number {
  return performance.now();
}

/** A number in [0, 1). */
export function random(): number {
  return timeScope.getStore()?.random() ?? Math.random();
}

/** An id that nobody else has: a UUID of version 4, never the same in two runs. */
export function uniqueId(): string {
  return crypto.randomUUID();
}

/** Calls back once, `ms` milliseconds from now. */
export function after(ms: number, callback: () => void): Timer {
  const scope = timeScope.getStore();
  if (scope?.after !== undefined) return scope.after(ms, callback);
  let handle: ReturnType<typeof setTimeout>;
  const end = now() + ms;
  const arm = (): void => {
    const left = Math.max(0, end - now());
    handle = left > LONGEST_TIMEOUT ? setTimeout(arm, LONGEST_TIMEOUT) : setTimeout(callback, left);
  };
  if (ms > LONGEST_TIMEOUT) arm();
  else handle = setTimeout(callback, ms);
  return { cancel: () => clearTimeout(handle) };
}

/** Resolves `ms` milliseconds from now, or as soon as the signal aborts; never rejects. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const wake = (): void => {
      timer.cancel();
      signal?.removeEventListener("abort", wake);
      resolve();
    };
    const timer = after(ms, wake);
    signal?.addEventListener("abort", wake);
    // The first timer of a program makes Deno load its timers, and microtasks run meanwhile.
    if (signal?.aborted) wake();
  });
}

/**
 * Runs database or network I/O in real time; under a test harness it counts as in flight.
 *
 * @param text the statement, where it is one: the harness then waits for it no longer than it should
 * @param database what it is sent to
 */
export function inRealTime<T>(
  io: () => Promise<T>,
  text?: string,
  database?: LockObserver,
): Promise<T> {
  const scope = timeScope.getStore();
  return scope === undefined ? io() : scope.track(io, text, database);
}

/**
 * Runs a handler; under a test harness its timers are counted for this delivery.
 *
 * @param database where the handler may wait for locks
 */
export function inDelivery<T>(
  name: string,
  handle: () => Promise<T>,
  database?: LockObserver,
): Promise<T> {
  const scope = timeScope.getStore();
  return scope === undefined ? handle() : scope.delivery(name, handle, database);
}

/** Lets steps be made, and go on, in the context in which this is called, whoever resumes them. */
export function stepsInThisContext<T>(makeSteps: () => Steps<T>): () => Steps<T> {
  if (timeScope.getStore() === undefined) return makeSteps;
  const inContext = AsyncLocalStorage.snapshot();
  return () => {
    const steps = inContext(makeSteps);
    const next = steps.next.bind(steps);
    steps.next = (...args) => inContext(() => next(...args));
    return steps;
  };
}

/** Lets a callback run in the context in which this is called, whoever calls it later. */
export function inThisContext(callback: () => void): () => void {
  return AsyncLocalStorage.bind(callback);
}

/** Runs code in the time scope in which this is called, whoever runs it later. */
export function thisScope(): <T>(code: () => T) => T {
  const scope = timeScope.getStore();
  return (code) => timeScope.run(scope, code);
}

/** Runs code in the context in which this is called, whoever runs it later. */
export function thisContext(): <T>(code: () => T) => T {
  return AsyncLocalStorage.snapshot();
}

/** `setTimeout` fires at once above this (2^31 - 1, HTML Standard, timers). */
const LONGEST_TIMEOUT = 2 ** 31 - 1;
