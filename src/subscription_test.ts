import assert from "node:assert/strict";
import { DeclarationError } from "./errors.ts";
import { inbox } from "./inbox.ts";
import type { CheckedOptions } from "./subscription.ts";
import { text } from "./text.ts";

const leased = inbox("leased", { id: "id", lockedUntil: "locked_until", payload: text("payload") });
const plain = inbox("plain", { id: "id", payload: text("payload") });
const queue = leased.queue("mails");

/** As plain JavaScript calls it. */
const subscribe = queue.subscribe as unknown as (
  options: unknown,
  handler?: unknown,
) => ReturnType<typeof queue.subscribe>;
const handler = (): void => {};
// deno-lint-ignore no-explicit-any -- any class of errors
type ErrorClass = new (...args: any[]) => Error;

function refuses(options: unknown, errorClass: ErrorClass, pattern: RegExp): void {
  assert.throws(() => subscribe(options, handler), (error: unknown) => {
    assert(error instanceof errorClass, String(error));
    assert.match(error.message, pattern);
    assert.match(error.message, /queue "mails"/);
    return true;
  });
}

const DEFAULTS: CheckedOptions = {
  workers: 1,
  batch: undefined,
  transactional: false,
  lease: undefined,
  pollInterval: undefined,
  maxAttempts: undefined,
  deadLetter: undefined,
  backoff: { first: 1_000, cap: 3_600_000 },
  onFailure: { error: "retry", decode: "retry" },
  timeout: undefined,
};

Deno.test("a subscription holds its queue, its handler and its options in milliseconds", () => {
  const options = { workers: 3, lease: { minutes: 1 }, pollInterval: { seconds: 2 } };
  const subscription = queue.subscribe(options, handler);
  assert.equal(subscription.queue, queue);
  assert.equal(subscription.handle, handler);
  assert.deepEqual(subscription.options, {
    ...DEFAULTS,
    workers: 3,
    lease: 60_000,
    pollInterval: 2_000,
  });
});

Deno.test("options that are not given are left to the broker", () => {
  assert.deepEqual(queue.subscribe(handler).options, DEFAULTS);
  assert.deepEqual(queue.subscribe({}, handler).options, DEFAULTS);
  const none = Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, undefined]));
  assert.deepEqual(subscribe(none, handler).options, DEFAULTS);
});

Deno.test("an unknown option is refused, with the options there are", () => {
  refuses(
    { concurrency: 5 },
    DeclarationError,
    /concurrency is not an option; options are workers, batch, transactional, lease, pollInterval, maxAttempts, deadLetter, backoff, onFailure, timeout$/,
  );
  refuses({ Workers: 5, colour: 1 }, DeclarationError, /Workers, colour is not an option/);
});

Deno.test("workers is a whole number of at least 1", () => {
  for (const workers of [0, -1, 1.5, NaN, Infinity, "2", 2n, null, 2 ** 53]) {
    if (workers === null) continue; // counts as absent
    refuses({ workers }, RangeError, /workers: give a whole number of at least 1$/);
  }
});

Deno.test("a lease is more than nothing, at most a year, and whole seconds", () => {
  for (const lease of [0, { seconds: 0 }, {}, -1, NaN, Infinity, { days: 366 }]) {
    refuses({ lease }, RangeError, /the lease of queue "mails"/);
  }
  const leaseOf = (lease: number) => queue.subscribe({ lease }, handler).options.lease;
  assert.deepEqual([1, 999, 1_000, 1_001, 0.5].map(leaseOf), [1_000, 1_000, 1_000, 2_000, 1_000]);
  assert.equal(queue.subscribe({ lease: { days: 365 } }, handler).options.lease, 31_536_000_000);
  refuses({ lease: { weeks: 1 } }, TypeError, /"weeks" in the lease of/);
  refuses({ lease: "30 s" }, TypeError, /as the lease of/);
});

Deno.test("a poll interval is at least a millisecond", () => {
  for (const pollInterval of [0, 0.5, { seconds: 0 }, -1, NaN, Infinity]) {
    refuses({ pollInterval }, RangeError, /the poll interval of queue "mails"/);
  }
  assert.equal(queue.subscribe({ pollInterval: 1 }, handler).options.pollInterval, 1);
  refuses({ pollInterval: { months: 1 } }, TypeError, /"months" in the poll interval of/);
});

Deno.test("a lease on a row lock table is refused, with the role that it lacks", () => {
  for (const lease of [{ minutes: 1 }, 5_000, 0]) {
    assert.throws(
      () => plain.queue("mails").subscribe({ lease: lease as never }, handler),
      (error: unknown) => {
        assert(error instanceof DeclarationError);
        assert.equal(
          error.message,
          'Cannot give queue "mails" a lease: "plain" holds rows by row lock; ' +
            "give it the role lockedUntil",
        );
        return true;
      },
    );
  }
  assert.equal(plain.queue().subscribe({ workers: 2 }, handler).options.workers, 2);
});

Deno.test("what is no handler is a TypeError that asks for a function", () => {
  for (const none of [undefined, null, "handler", {}]) {
    for (const call of [() => subscribe({}, none), () => subscribe(none as never)]) {
      assert.throws(call, (error: unknown) => {
        assert(error instanceof TypeError, String(error));
        assert.match(error.message, /Cannot subscribe to queue "mails" with .*: give a function$/);
        return true;
      });
    }
  }
});

Deno.test("options that are no object are refused in words", () => {
  for (const options of [null, "fast", 5]) {
    assert.throws(() => subscribe(options, handler), (error: unknown) => {
      assert(error instanceof TypeError || error instanceof DeclarationError, String(error));
      assert.match(error.message, /queue "mails"/);
      return true;
    }, String(options));
  }
});

Deno.test("messages are dead-lettered to another group of a table that has groups", () => {
  const grouped = inbox("jobs", {
    id: "id",
    group: "queue",
    fifo: true,
    lockedUntil: "locked_until",
    payload: text("payload"),
  }).queue("mails");
  const { options } = grouped.subscribe({ deadLetter: "dead" }, () => {});
  assert.equal(options.deadLetter?.name, "dead");
  assert.equal(options.deadLetter?.inbox, grouped.inbox);
  assert.throws(() => grouped.subscribe({ deadLetter: "mails" }, () => {}), DeclarationError);
  assert.throws(() => grouped.subscribe({ deadLetter: "" }, () => {}), TypeError);
  assert.throws(() => queue.subscribe({ deadLetter: "dead" }, () => {}), /has no groups/);
  assert.throws(() => grouped.subscribe({ workers: 2 }, () => {}), /it is fifo/);
});
