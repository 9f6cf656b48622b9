import { now } from "../../clock.ts";
import type { LatencyGroup, LatencySummary, LatencyVerdict } from "./summarize.ts";

/** What was measured, when, and how: plain JSON, times in milliseconds. */
export interface LatencyReport {
  /** What was measured. */
  readonly name: string;
  /** When, as ISO 8601 in UTC. */
  readonly runAt: string;
  /** How many events were measured. */
  readonly n: number;
  /** Of those that were broadcast. */
  readonly broadcast?: LatencyGroup;
  /** Of those that a poll has found. */
  readonly poll?: LatencyGroup;
  /** Whether what was promised was kept. */
  readonly verdict?: LatencyVerdict;
}

/**
 * A summary as JSON to be kept, with the time of its making. Times are rounded to a microsecond.
 *
 * @param name what was measured, such as `Redis`
 */
export function report(name: string, summary: LatencySummary): LatencyReport {
  const rounded = JSON.parse(
    JSON.stringify(summary, (_, value) => typeof value === "number" ? round(value) : value),
  );
  return { name, runAt: new Date(now()).toISOString(), ...rounded };
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
