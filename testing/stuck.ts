import { FakeTimeError } from "./fake_time_error.ts";
import type { LockAnswer } from "./lock_waits.ts";
import { hostMonotonic, type InFlight } from "./test_time.ts";
import type { VirtualScope } from "./virtual_scope.ts";

/** The error that says for which statements the clock stands still. */
export function stuckStatement(
  statements: readonly InFlight[],
  answers: readonly LockAnswer[],
): FakeTimeError {
  const shown = statements.slice(0, MOST_SHOWN).map(({ text = "", since }) =>
    `${excerpt(text)} (${Math.round(hostMonotonic() - since)} ms)`
  );
  const rest = statements.length - shown.length;
  const more = rest > 0 ? ` and ${rest} more` : "";
  return new FakeTimeError(
    "stuck",
    `Cannot move the virtual clock: the database has not answered yet, in so much real time: ` +
      `${shown.join(", ")}${more}; ${locksOf(answers)}, or give a longer patience`,
  );
}

/** The error that says for which deliveries the clock stands still. */
export function stuckDelivery(
  waiting: readonly VirtualScope[],
  patience: number,
  answers: readonly LockAnswer[],
): FakeTimeError {
  const names = waiting.map(({ name }) => name).join(", ");
  const isOther = answers.every((answer) => "count" in answer && answer.count === 0);
  const locks = isOther ? "" : `${locksOf(answers)}; otherwise `;
  return new FakeTimeError(
    "stuck",
    `Cannot move the virtual clock: the delivery of ${names} has waited ${patience} ms of real ` +
      `time for something that no virtual timer drives; ${locks}` +
      `use the global setTimeout (on Deno named imports of node:timers and node:timers/promises stay ` +
      `real), run slow I/O in time.track(), settle what it waits for from the test before time moves, ` +
      `or give a longer patience`,
  );
}

/** What the databases say of locks, and what can be done about it. */
function locksOf(answers: readonly LockAnswer[]): string {
  const reasons = answers.flatMap((answer) => "unknown" in answer ? [answer.unknown] : []);
  if (reasons.length > 0) {
    return `whether that is for a lock is not known (${
      [...new Set(reasons)].join("; ")
    }): make it ` +
      `faster, or end the transaction that it waits for`;
  }
  const count = answers.reduce((sum, answer) => sum + ("count" in answer ? answer.count : 0), 0);
  return count === 0
    ? "nothing waits for a lock there: make it faster"
    : `${count} ${
      count === 1 ? "waits" : "wait"
    } for locks there, and not all of it for a delivery ` +
      `that sleeps: end the transactions that hold them before time moves`;
}

function excerpt(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}

const LONGEST = 120;
const MOST_SHOWN = 3;
