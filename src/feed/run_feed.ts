import { after } from "../clock.ts";
import { type Duration, toMilliseconds } from "../duration.ts";
import { refuseUnknownOptions } from "../refuse_unknown_options.ts";
import type { FeedEvent } from "./feed_event.ts";
import { checkFollow, type FollowOptions, type FollowPlace } from "./follow_options.ts";

/** How a feed is followed for a while. */
export interface RunOptions extends FollowOptions {
  /** How long; without it until the feed stops or the signal aborts. */
  readonly timeout?: Duration;
  /** Whether it ends as soon as an event is told of, since polling is then not needed; default false. */
  readonly stopOnNotify?: boolean;
  /** Ends it. */
  readonly signal?: AbortSignal;
}

/** How a feed was followed for a while. */
export interface FeedRun {
  /** The seq of the last event that was handled. */
  readonly watermark: number;
  /** How many events were handled. */
  readonly events: number;
  /** Why it ended. */
  readonly reason: "timeout" | "notified" | "aborted" | "closed";
}

/** What is followed, and what ends it. */
export interface RunPlan<Event> {
  readonly following: AsyncIterableIterator<FeedEvent<Event>>;
  /** The seq of the last event that was seen. */
  readonly from: number;
  /** In milliseconds. */
  readonly timeout: number | undefined;
  readonly signal: AbortSignal | undefined;
  /** Calls back when an event is told of; does nothing if that is not to end it. */
  onNotified(callback: () => void): () => void;
}

/** Where a feed is run from, and for how long. */
export interface RunPlace extends FollowPlace {
  /** In milliseconds. */
  readonly timeout: number | undefined;
}

/**
 * Where a feed is run from, and for how long.
 *
 * @param what what was attempted, as the error begins
 * @throws whatever `checkFollow` throws; {DeclarationError} if the timeout is no duration
 */
export function checkRun(what: string, options: RunOptions): RunPlace {
  refuseUnknownOptions(what, options, RUN);
  const { tenant, scope, from, timeout } = options;
  const place = checkFollow(what, { tenant, scope, from });
  if (timeout === undefined) return { ...place, timeout };
  return { ...place, timeout: toMilliseconds(timeout, `the timeout: ${what}`) };
}

/** Calls a handler for every event, one after the other, until something ends it. */
export async function runFeed<Event>(
  { following, from, timeout, signal, onNotified }: RunPlan<Event>,
  handler: (event: FeedEvent<Event>) => unknown,
): Promise<FeedRun> {
  let reason: FeedRun["reason"] | undefined;
  const end = (why: FeedRun["reason"]): void => {
    reason ??= why;
    void following.return!();
  };
  const aborted = (): void => end("aborted");
  const timer = timeout === undefined ? undefined : after(timeout, () => end("timeout"));
  const unlisten = onNotified(() => end("notified"));
  signal?.addEventListener("abort", aborted);
  if (signal?.aborted) aborted();
  let watermark = from;
  let events = 0;
  try {
    for await (const event of following) {
      await handler(event);
      watermark = event.seq;
      events++;
      if (reason !== undefined) break;
    }
  } finally {
    timer?.cancel();
    unlisten();
    signal?.removeEventListener("abort", aborted);
  }
  return { watermark, events, reason: reason ?? "closed" };
}

const RUN: readonly (keyof RunOptions)[] = [
  "tenant",
  "scope",
  "from",
  "timeout",
  "stopOnNotify",
  "signal",
];
