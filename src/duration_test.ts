import assert from "node:assert/strict";
import { type Duration, toMilliseconds } from "./duration.ts";

const of = (duration: unknown) => toMilliseconds(duration as Duration, "the lease");

Deno.test("a number is milliseconds", () => {
  for (const ms of [0, 1, 0.5, 1_500, 2 ** 31, Number.MAX_SAFE_INTEGER]) assert.equal(of(ms), ms);
});

Deno.test("units are added up, and a day is 24 hours", () => {
  assert.equal(of({ milliseconds: 7 }), 7);
  assert.equal(of({ seconds: 2 }), 2_000);
  assert.equal(of({ minutes: 3 }), 180_000);
  assert.equal(of({ hours: 4 }), 14_400_000);
  assert.equal(of({ days: 5 }), 432_000_000);
  const all = { days: 1, hours: 1, minutes: 1, seconds: 1, milliseconds: 1 };
  assert.equal(of(all), 86_400_000 + 3_600_000 + 60_000 + 1_000 + 1);
  assert.equal(of({ seconds: 0.25 }), 250);
  assert.equal(of({ hours: 1, minutes: -30 }), 1_800_000);
  assert.equal(of({}), 0);
  assert.equal(of({ minutes: undefined, seconds: 1 }), 1_000);
});

Deno.test("a Temporal.Duration fits", { ignore: !("Temporal" in globalThis) }, () => {
  // @ts-ignore: the types of Temporal are there only where it is
  const { Duration } = globalThis.Temporal;
  assert.equal(
    of(Duration.from({ days: 1, hours: 2, minutes: 3, seconds: 4, milliseconds: 5 })),
    93_784_005,
  );
  assert.equal(of(new Duration()), 0);
  assert.equal(of(Duration.from("PT90M")), 5_400_000);
  for (const unit of ["years", "months", "weeks", "microseconds", "nanoseconds"]) {
    assert.throws(() => of(Duration.from({ [unit]: 1 })), (error: Error) => {
      assert(error instanceof TypeError);
      assert.match(error.message, new RegExp(`the unit "${unit}" in the lease`));
      return true;
    });
  }
  assert.throws(() => of(Duration.from({ seconds: -1 })), RangeError);
});

Deno.test("a unit that is not of fixed length, or unknown, is a TypeError that names it", () => {
  for (const unit of ["years", "months", "weeks", "microseconds", "nanoseconds", "minute", "ms"]) {
    assert.throws(() => of({ seconds: 1, [unit]: 1 }), (error: Error) => {
      assert(error instanceof TypeError, unit);
      assert.equal(
        error.message,
        `Cannot use the unit "${unit}" in the lease: ` +
          `give days, hours, minutes, seconds, milliseconds (a day is 24 hours)`,
      );
      return true;
    });
  }
});

Deno.test("what is no duration is a TypeError that names what it is for", () => {
  for (const value of ["30 s", "5", null, undefined, true, 5n, () => 5]) {
    assert.throws(() => of(value), (error: Error) => {
      assert(error instanceof TypeError, String(value));
      assert.match(error.message, /as the lease: give milliseconds or an object/);
      return true;
    });
  }
  for (const count of ["5", null, 5n, {}]) {
    if (count === null) continue; // counts as absent
    assert.throws(() => of({ minutes: count }), (error: Error) => {
      assert(error instanceof TypeError);
      assert.match(error.message, /as minutes of the lease: give a number/);
      return true;
    });
  }
});

Deno.test("a length that is negative or not finite is a RangeError that shows it", () => {
  for (const value of [-1, -0.001, NaN, Infinity, -Infinity, { seconds: -1 }, { hours: NaN }]) {
    assert.throws(() => of(value), (error: Error) => {
      assert(error instanceof RangeError, JSON.stringify(value));
      assert.match(error.message, /ms as the lease: give a finite length of 0 or more$/);
      return true;
    });
  }
  assert.throws(() => of({ days: 1, hours: -25 }), /Cannot use -3600000 ms/);
});
