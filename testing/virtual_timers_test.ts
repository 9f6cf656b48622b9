import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import {
  type TimerOwner,
  type TimerRequest,
  virtualTimeout,
  VirtualTimers,
} from "./virtual_timers.ts";

class Owner implements TimerOwner {
  readonly name = "owner";
  readonly hasEnded = false;
  timers = 0;

  count(change: 1 | -1): void {
    this.timers += change;
  }
}

function request(callback: () => void, delay: number, more: Partial<TimerRequest> = {}) {
  const owner = new Owner();
  return {
    kind: "setTimeout",
    callback,
    delay,
    args: [],
    owner,
    calledAs: request,
    ...more,
  } as const;
}

function fireAll(timers: VirtualTimers): void {
  while (timers.nextDue !== undefined) timers.fireNext();
}

Deno.test("timers fire by due time, and first in first out within one instant", () => {
  const timers = new VirtualTimers(1_000, () => {});
  const fired: string[] = [];
  const note = (name: string, delay: number) =>
    timers.add(request(() => fired.push(`${name} at ${timers.elapsed}`), delay));
  for (const [name, delay] of [["a", 5], ["b", 1], ["c", 5], ["d", 3], ["e", 1]] as const) {
    note(name, delay);
  }
  fireAll(timers);
  assert.deepEqual(fired, ["b at 1", "e at 1", "d at 3", "a at 5", "c at 5"]);
  assert.equal(timers.now, 1_005);
});

Deno.test("a heap of many timers, some of them cleared, keeps the order", () => {
  const timers = new VirtualTimers(0, () => {});
  const fired: number[] = [];
  const due = Array.from({ length: 500 }, (_, index) => (index * 7919) % 101);
  const handles = due.map((delay, index) => timers.add(request(() => fired.push(index), delay)));
  handles.forEach((handle, index) => index % 3 === 0 && handle.close());
  const expected = due.map((_, index) => index).filter((index) => index % 3 !== 0)
    .toSorted((one, other) => due[one]! - due[other]! || one - other);
  fireAll(timers);
  assert.deepEqual(fired, expected);
});

Deno.test("an interval re-armed for an instant queues behind the timers already there", () => {
  const timers = new VirtualTimers(0, () => {});
  const fired: string[] = [];
  const tick = request(
    () => {
      fired.push(`tick ${timers.now}`);
      if (timers.now === 10) timers.add(request(() => fired.push(`nested ${timers.now}`), 10));
      if (timers.now === 20) interval.close();
    },
    10,
    { kind: "setInterval" },
  );
  const interval = timers.add(tick);
  timers.add(request(() => fired.push(`other ${timers.now}`), 20));
  fireAll(timers);
  assert.deepEqual(fired, ["tick 10", "other 20", "nested 20", "tick 20"]);
});

Deno.test("a handle behaves like Node's Timeout", () => {
  const timers = new VirtualTimers(0, () => {});
  const fired: number[] = [];
  const owner = new Owner();
  const handle = timers.add(request(() => fired.push(timers.now), 10, { owner }));
  assert.equal(handle.hasRef(), true);
  assert.equal(handle.unref().hasRef(), false);
  assert.equal(handle.ref().hasRef(), true);
  timers.moveTo(4);
  assert.equal(handle.refresh(), handle);
  fireAll(timers);
  handle.refresh();
  assert.equal(owner.timers, 1);
  fireAll(timers);
  handle.refresh().close().refresh();
  assert.deepEqual(fired, [14, 24]);
  assert.equal(owner.timers, 0);
  {
    using _cleared = timers.add(request(() => fired.push(timers.now), 1, { owner }));
  }
  assert.equal(timers.nextDue, undefined);
});

Deno.test("a handle, its number and that number as text stand for the timer", () => {
  const timers = new VirtualTimers(0, () => {});
  const handle = timers.add(request(() => {}, 10));
  assert.equal(virtualTimeout(handle), handle);
  assert.equal(virtualTimeout(+handle), handle);
  assert.equal(virtualTimeout(`${handle}`), handle);
  assert.equal(virtualTimeout(1), undefined);
  assert.equal(virtualTimeout({}), undefined);
  const number = +handle;
  handle.close();
  assert.equal(virtualTimeout(number), undefined);
});

Deno.test("a callback runs in the context of its creation, with its handle and its arguments", () => {
  const timers = new VirtualTimers(0, () => {});
  const context = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  function callback(this: unknown, ...args: unknown[]) {
    seen.push(context.getStore(), this === handle, ...args);
  }
  const made = { ...request(() => {}, 1), callback, args: [1, "two"] };
  const handle = context.run("creation", () => timers.add(made));
  context.run("firing", () => timers.fireNext());
  assert.deepEqual(seen, ["creation", true, 1, "two"]);
});

Deno.test("a pending timer knows where it was created", () => {
  const timers = new VirtualTimers(500, () => {});
  function leakingHandler() {
    timers.add({ ...request(() => {}, 20), calledAs: timers.add });
  }
  leakingHandler();
  const [leak] = timers.pending;
  assert.equal(leak?.due, 520);
  assert.equal(leak.kind, "setTimeout");
  assert.equal(leak.delivery, "owner");
  assert.match(leak.stack, /^ +at leakingHandler \(.*virtual_timers_test\.ts/);
});

Deno.test("a callback that throws ends its timeout, but not its interval", () => {
  const timers = new VirtualTimers(0, () => {});
  const fail = () => {
    throw new Error("from the callback");
  };
  timers.add(request(fail, 1));
  timers.add(request(fail, 2, { kind: "setInterval" }));
  assert.throws(() => timers.fireNext(), /from the callback/);
  assert.throws(() => timers.fireNext(), /from the callback/);
  assert.deepEqual(timers.pending.map(({ kind, due }) => [kind, due]), [["setInterval", 4]]);
});

Deno.test("what is no function is refused", () => {
  const timers = new VirtualTimers(0, () => {});
  const text = "code" as unknown as () => void;
  assert.throws(() => timers.add(request(text, 1)), /Cannot create a timer that calls code/);
});
