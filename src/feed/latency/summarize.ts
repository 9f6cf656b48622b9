import { refuseUnknownOptions } from "../../refuse_unknown_options.ts";
import { percentile } from "./percentile.ts";
import type { LatencySample } from "./sample.ts";

/** A part of an event's way: until it is committed, from there to the follower, and to the follower's code. */
export type LatencySegment = "write+commit" | "broadcast" | "consume" | "end to end";

/** How long something took, in milliseconds. */
export interface Percentiles {
  /** What half of all values do not exceed. */
  readonly p50: number;
  /** What 90 % of all values do not exceed. */
  readonly p90: number;
  /** What 99 % of all values do not exceed. */
  readonly p99: number;
  /** The longest. */
  readonly max: number;
}

/** What a service promises. */
export interface LatencyObjective {
  /** Of all samples; 99 unless given. */
  readonly percentile?: number;
  /** The part of the way; from commit to follower's process, `broadcast`, unless given. */
  readonly segment?: LatencySegment;
  /** How long it may take, in milliseconds. */
  readonly milliseconds: number;
}

/** Whether what was promised was kept. */
export interface LatencyVerdict extends Required<LatencyObjective> {
  /** How long it took. */
  readonly measured: number;
  /** Whether that is no longer than promised. */
  readonly met: boolean;
}

/** How long events took that came by one way. */
export interface LatencyGroup {
  /** How many there are. */
  readonly n: number;
  /** By part of the way. */
  readonly segments: Readonly<Record<LatencySegment, Percentiles>>;
  /** The part, other than the whole, whose p99 is the longest. */
  readonly bottleneck: Exclude<LatencySegment, "end to end">;
}

/** What samples say. Events that were broadcast are kept apart from those that a poll has found. */
export interface LatencySummary {
  /** How many samples there are. */
  readonly n: number;
  /** Of those that were broadcast; absent where there are none. */
  readonly broadcast?: LatencyGroup;
  /** Of those that a poll has found; absent where there are none. */
  readonly poll?: LatencyGroup;
  /** Whether what was promised was kept, by all samples together; absent where nothing was. */
  readonly verdict?: LatencyVerdict;
}

/** What samples are held against. */
export interface SummarizeOptions {
  /** What is promised. */
  readonly objective?: LatencyObjective;
}

/**
 * How long events took, by percentiles (nearest rank) of each part of their way.
 *
 * @throws {RangeError} if there are no samples, or one has times out of order
 */
export function summarize(
  samples: readonly LatencySample[],
  options: SummarizeOptions = {},
): LatencySummary {
  refuseUnknownOptions("Cannot summarize latencies", options, ["objective"]);
  if (samples.length === 0) {
    throw new RangeError("Cannot summarize latencies of no samples: measure some first");
  }
  samples.forEach(checkOrder);
  return {
    n: samples.length,
    ...groupOf("broadcast", samples),
    ...groupOf("poll", samples),
    ...verdictOf(samples, options.objective),
  };
}

function checkOrder(sample: LatencySample, index: number): void {
  const { started, committed, received, consumed } = sample;
  const times = [started, committed, received, consumed];
  if (times.every(Number.isFinite) && started <= committed && received <= consumed) return;
  throw new RangeError(
    `Cannot summarize latencies: sample ${index} has the times ${
      times.join(", ")
    }; give times in ` +
      `milliseconds, each no earlier than the one that it follows`,
  );
}

function groupOf(
  source: LatencySample["source"],
  samples: readonly LatencySample[],
): { readonly [source: string]: LatencyGroup } {
  const own = samples.filter((sample) => sample.source === source);
  if (own.length === 0) return {};
  const segments = Object.fromEntries(
    SEGMENTS.map((segment) => [segment, percentilesOf(own, segment)]),
  ) as Record<LatencySegment, Percentiles>;
  const [bottleneck] = PARTS.toSorted((one, two) => segments[two].p99 - segments[one].p99);
  return { [source]: { n: own.length, segments, bottleneck: bottleneck! } };
}

function percentilesOf(samples: readonly LatencySample[], segment: LatencySegment): Percentiles {
  const sorted = lengths(samples, segment);
  const at = (percent: number): number => percentile(sorted, percent)!;
  return { p50: at(50), p90: at(90), p99: at(99), max: at(100) };
}

function verdictOf(
  samples: readonly LatencySample[],
  objective: LatencyObjective | undefined,
): { readonly verdict?: LatencyVerdict } {
  if (objective === undefined) return {};
  const { percentile: percent = 99, segment = "broadcast", milliseconds } = objective;
  if (!(milliseconds >= 0)) {
    throw new RangeError(`Cannot promise ${milliseconds} ms: give a number of milliseconds`);
  }
  if (!SEGMENTS.includes(segment)) {
    throw new RangeError(
      `Cannot promise a latency of "${segment}": give one of ${SEGMENTS.join(", ")}`,
    );
  }
  const measured = percentile(lengths(samples, segment), percent)!;
  const met = measured <= milliseconds;
  return { verdict: { percentile: percent, segment, milliseconds, measured, met } };
}

/** In ascending order. Clocks of two hosts may differ: nothing took less than no time. */
function lengths(samples: readonly LatencySample[], segment: LatencySegment): readonly number[] {
  const [from, to] = ENDS[segment];
  return samples.map((sample) => Math.max(0, sample[to] - sample[from])).sort((a, b) => a - b);
}

type Time = "started" | "committed" | "received" | "consumed";

const ENDS: Readonly<Record<LatencySegment, readonly [Time, Time]>> = {
  "write+commit": ["started", "committed"],
  "broadcast": ["committed", "received"],
  "consume": ["received", "consumed"],
  "end to end": ["started", "consumed"],
};
const SEGMENTS = Object.keys(ENDS) as LatencySegment[];
const PARTS = ["write+commit", "broadcast", "consume"] as const;
