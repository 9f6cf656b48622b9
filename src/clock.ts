/**
 * The only place from which Holdfast takes time, timers and random numbers.
 *
 * Every call looks the globals up anew, so that whoever replaces them, the test harness or a fake
 * clock of the user's own, is seen.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Steps } from "./driver/steps.ts";

/** What a test harness puts around an app to see, and to steer, how its time passes. */
export interface TimeScope {
  /** Runs I/O outside the scope, in real time, and counts it as in flight until it settles. */
  track<T>(io: () => Promise<T>): Promise<T>;
  /** Runs one delivery's handler in a scope of its own, so that its timers can be told apart. */
  delivery<T>(name: string, handle: () => Promise<T>): Promise<T>;
  /** A number in [0, 1), the same sequence in every run. */
  random(): number;
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

/** Milliseconds on a clock that never steps. */
export function monotonic(): number {
  return performance.now();
}

/** A number in [0, 1). */
export function random(): number {
  return timeScope.getStore()?.random() ?? Math.random();
}

/** Calls back once, `ms` milliseconds from now. */
export function after(ms: number, callback: () => void): Timer {
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
  });
}

/** Runs database or network I/O in real time; under a test harness it counts as in flight. */
export function inRealTime<T>(io: () => Promise<T>): Promise<T> {
  const scope = timeScope.getStore();
  return scope === undefined ? io() : scope.track(io);
}

/** Runs a handler; under a test harness its timers are counted for this delivery. */
export function inDelivery<T>(name: string, handle: () => Promise<T>): Promise<T> {
  const scope = timeScope.getStore();
  return scope === undefined ? handle() : scope.delivery(name, handle);
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

/** Runs code in the context in which this is called, whoever runs it later. */
export function thisContext(): <T>(code: () => T) => T {
  return AsyncLocalStorage.snapshot();
}

/** `setTimeout` fires at once above this (2^31 - 1, HTML Standard, timers). */
const LONGEST_TIMEOUT = 2 ** 31 - 1;
