import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { ack, retryAfter } from "@holdfast/inbox";
import { sqlite } from "@holdfast/inbox/sqlite";
import { napService } from "./nap_service.ts";

/** A fake clock of the user's own, which has replaced the global timers and `Date`. */
export interface FakeClock {
  /** Moves on by so many milliseconds, fires what is due, and lets promises settle. */
  advance(ms: number): Promise<unknown>;
  /** Puts the originals back. */
  restore(): unknown;
}

/**
 * Checks that an app which is started as in production follows a fake clock: it polls, waits before
 * a retry, and renews a lease, all by the replaced globals.
 */
export async function checkAppOnFakeClock(install: () => FakeClock): Promise<void> {
  const database = new DatabaseSync(":memory:");
  const clock = install();
  try {
    await workOnFakeClock(database, clock);
  } finally {
    clock.restore();
    database.close();
  }
}

async function workOnFakeClock(database: DatabaseSync, clock: FakeClock): Promise<void> {
  const begin = Date.now();
  const events: { readonly what: string; readonly at: number; readonly lost?: boolean }[] = [];
  const service = napService(sqlite({ handle: database }), async ({ minutes }, delivery) => {
    events.push({ what: `attempt ${delivery.attempt}`, at: Date.now() - begin });
    if (delivery.attempt === 1) return retryAfter({ minutes: 5 });
    await new Promise((resolve) => setTimeout(resolve, minutes * 60_000));
    events.push({ what: "end", at: Date.now() - begin, lost: delivery.signal.aborted });
    return ack();
  });
  const running = await service.app.start();
  // Past the app, which is not woken by it: only a poll finds the message.
  database.exec(`INSERT INTO naps (payload) VALUES ('{"minutes":5}')`);
  await advanceUntil(clock, () => events.length === 1);
  assert.ok(events[0]!.at <= 3_000, JSON.stringify(events));
  await advanceUntil(clock, () => events.length === 2);
  for (let seconds = 0; seconds < 240; seconds++) await clock.advance(1_000);
  const [row] = database.prepare("SELECT locked_until, attempt FROM naps").all();
  assert.ok(timeOf(row!.locked_until) > Date.now(), `${JSON.stringify(row)}, ${Date.now()}`);
  await advanceUntil(clock, () => events.length === 3);
  await advanceUntil(clock, () => database.prepare("SELECT 1 FROM naps").all().length === 0);
  await running.stop();
  assert.deepEqual(
    events.map(({ what, lost }) => lost === undefined ? what : `${what}, lost: ${lost}`),
    ["attempt 1", "attempt 2", "end, lost: false"],
  );
  const [first, second, end] = events.map(({ at }) => at);
  assertNear(second! - first!, 300_000);
  assertNear(end! - second!, 300_000);
}

async function advanceUntil(clock: FakeClock, holds: () => boolean): Promise<void> {
  for (let seconds = 0; !holds(); seconds++) {
    assert.ok(seconds < 600, `Waited for ten minutes in vain until ${holds}`);
    await clock.advance(1_000);
  }
}

/** A wait that the clock decides; a poll may come a little later, never earlier. */
function assertNear(actual: number, wanted: number): void {
  assert.ok(actual >= wanted && actual <= wanted + 5_000, `${actual} ms, not ${wanted}`);
}

function timeOf(value: unknown): number {
  return typeof value === "string" ? Date.parse(value) : Number(value);
}
