import { AsyncLocalStorage } from "node:async_hooks";
import type { PendingTimer, TimerKind } from "./test_time.ts";
import { NOT_QUEUED, type Queued, TimerHeap } from "./timer_heap.ts";

/** The delivery a timer counts for. */
export interface TimerOwner {
  /** The delivery's name; `undefined` for timers of the app itself. */
  readonly name: string | undefined;
  /** Whether its timers are not to fire any more. */
  readonly hasEnded: boolean;
  /** Called with 1 when a timer becomes pending, with -1 when it no longer is. */
  count(change: 1 | -1): void;
}

/** What a timer is made from. */
export interface TimerRequest {
  /** What creates it. */
  readonly kind: TimerKind;
  /** Called when it fires, in the async context it was created in. */
  // deno-lint-ignore no-explicit-any -- as the parameters of setTimeout's callback
  readonly callback: (...args: any[]) => unknown;
  /** Milliseconds from now; whole or not, never negative. */
  readonly delay: number;
  /** Passed to the callback. */
  readonly args: readonly unknown[];
  /** Whose timer it is. */
  readonly owner: TimerOwner;
  /** Whether it is Holdfast's own: its place is then of no interest. */
  readonly isOwn?: boolean;
  /** The function the user called: it and what it calls are left out of the stack. */
  readonly calledAs: (...args: never[]) => unknown;
}

/** How a handle reaches its timer. */
export interface TimerControl {
  /** Queues it again, a full delay from now, unless it was cleared. */
  rearm(): void;
  /** Ends it for good. */
  clear(): void;
}

/** The queue of pending virtual timers: by due time, first in first out within one instant. */
export class VirtualTimers {
  /** Where this clock started, in milliseconds since 1970. */
  readonly start: number;
  readonly #changed: () => void;
  readonly #queue = new TimerHeap<Timer>();
  #now: number;
  #sequence = 0;

  /**
   * A clock that stands at `start`.
   *
   * @param changed called when a timer is created, cleared or fired
   */
  constructor(start: number, changed: () => void) {
    this.start = start;
    this.#now = start;
    this.#changed = changed;
  }

  /** The virtual present, in milliseconds since 1970. */
  get now(): number {
    return this.#now;
  }

  /** Virtual milliseconds since the start. */
  get elapsed(): number {
    return this.#now - this.start;
  }

  /** When the next timer fires, if one is pending. */
  get nextDue(): number | undefined {
    return this.#queue.first?.due;
  }

  /** Whether the next timer is Holdfast's own. */
  get isNextOwn(): boolean {
    return this.#queue.first?.isOwn ?? false;
  }

  /** The delivery whose handler has created the next timer; `undefined` if no handler has. */
  get nextDelivery(): string | undefined {
    return this.#queue.first?.owner.name;
  }

  /** Where the next timer was created. */
  get nextStack(): string {
    return this.#queue.first === undefined ? "" : framesOf(this.#queue.first);
  }

  /** What is pending, in the order in which it will fire. */
  get pending(): PendingTimer[] {
    return this.pendingOf(() => true);
  }

  /** Likewise of some owners. */
  pendingOf(isOf: (owner: TimerOwner) => boolean): PendingTimer[] {
    return this.#queue.sorted().filter(({ owner }) => isOf(owner)).map((timer) => ({
      kind: timer.kind,
      due: timer.due,
      refed: timer.handle.hasRef(),
      delivery: timer.owner.name,
      stack: framesOf(timer),
    }));
  }

  /** Queues a timer. */
  add(request: TimerRequest): VirtualTimeout {
    if (typeof request.callback !== "function") {
      throw new TypeError(
        `Cannot create a timer that calls ${String(request.callback)}: give a function`,
      );
    }
    const control = { rearm: () => this.#rearm(timer), clear: () => this.#clear(timer) };
    const timer: Timer = {
      ...request,
      handle: new VirtualTimeout(control),
      inContext: AsyncLocalStorage.snapshot(),
      trace: {},
      cleared: false,
      due: 0,
      sequence: 0,
      index: NOT_QUEUED,
    };
    if (!request.isOwn) Error.captureStackTrace(timer.trace, request.calledAs);
    this.#enqueue(timer);
    return timer.handle;
  }

  /** Moves to the next timer and calls it back; throws what the callback throws. */
  fireNext(): void {
    const timer = this.#queue.first;
    if (timer === undefined) return;
    this.moveTo(timer.due);
    this.#dequeue(timer);
    try {
      timer.inContext(() => Reflect.apply(timer.callback, timer.handle, timer.args));
    } finally {
      // Behind the timers that the callback created for that instant, as real intervals queue.
      if (timer.kind === "setInterval") this.#rearm(timer);
      else if (timer.index === NOT_QUEUED) timer.handle.forget();
    }
  }

  /** Moves on without firing anything; never back. */
  moveTo(time: number): void {
    this.#now = Math.max(this.#now, time);
  }

  /** Clears every timer, or those of some owners. */
  clear(isOf: (owner: TimerOwner) => boolean = () => true): void {
    for (const timer of this.#queue.sorted()) if (isOf(timer.owner)) this.#clear(timer);
  }

  #rearm(timer: Timer): void {
    if (timer.cleared) return;
    if (timer.index !== NOT_QUEUED) this.#dequeue(timer);
    this.#enqueue(timer);
  }

  #clear(timer: Timer): void {
    timer.cleared = true;
    timer.handle.forget();
    if (timer.index !== NOT_QUEUED) this.#dequeue(timer);
  }

  #enqueue(timer: Timer): void {
    if (timer.owner.hasEnded) return;
    timer.due = this.#now + timer.delay;
    timer.sequence = this.#sequence++;
    this.#queue.push(timer);
    timer.owner.count(1);
    this.#changed();
  }

  #dequeue(timer: Timer): void {
    this.#queue.remove(timer);
    timer.owner.count(-1);
    this.#changed();
  }
}

/** The handle of a virtual timer, an object like Node's `Timeout`. */
export class VirtualTimeout implements Disposable {
  readonly #control: TimerControl;
  readonly #id = nextId++;
  #refed = true;

  /** Made by {@link VirtualTimers.add}. */
  constructor(control: TimerControl) {
    this.#control = control;
  }

  /** Marks it as one that keeps a process alive. */
  ref(): this {
    this.#refed = true;
    return this;
  }

  /** Marks it as one that does not keep a process alive; it fires all the same. */
  unref(): this {
    this.#refed = false;
    return this;
  }

  /** Whether it is marked as keeping a process alive. */
  hasRef(): boolean {
    return this.#refed;
  }

  /** Starts its delay over from now, also after it fired; not after it was cleared. */
  refresh(): this {
    this.#control.rearm();
    return this;
  }

  /** Clears it. */
  close(): this {
    this.#control.clear();
    return this;
  }

  /** Its number, which `clearTimeout` takes as well. */
  [Symbol.toPrimitive](): number {
    byId.set(this.#id, this);
    return this.#id;
  }

  /** Clears it. */
  [Symbol.dispose](): void {
    this.#control.clear();
  }

  /** Frees its number. */
  forget(): void {
    byId.delete(this.#id);
  }
}

/** The virtual timer that a handle, a number or a numeric string stands for, if it is one. */
export function virtualTimeout(handle: unknown): VirtualTimeout | undefined {
  if (handle instanceof VirtualTimeout) return handle;
  if (typeof handle !== "number" && typeof handle !== "string") return undefined;
  return byId.get(Number(handle));
}

interface Timer extends TimerRequest, Queued {
  readonly handle: VirtualTimeout;
  readonly inContext: <T>(fn: () => T) => T;
  readonly trace: { stack?: string };
  cleared: boolean;
}

/** V8 formats a stack when it is first read, so that only a leak report pays for it. */
function framesOf(timer: Timer): string {
  const stack = timer.trace.stack ?? "";
  return stack.slice(stack.indexOf("\n") + 1);
}

/** Numbers that no real timer has, so that a number tells which kind it stands for. */
let nextId = 1_000_000_000;
/** Only timers that were asked for their number, as in Node. */
const byId = new Map<number, VirtualTimeout>();
