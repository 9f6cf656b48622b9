/**
 * What happens, and the state that follows from it, written in one transaction, told after commit, and
 * never missed: followers see every event of a scope exactly once, in order.
 *
 * ```ts
 * import { Broker } from "@holdfast/inbox";
 * import { Feed } from "@holdfast/inbox/feed";
 * import { sqlite } from "@holdfast/inbox/sqlite";
 *
 * await using broker = await new Broker(sqlite(":memory:")).connect();
 * const worlds = new Feed<{ type: string }, { name: string }>("worlds", {
 *   broker,
 *   createTables: true,
 * });
 * await worlds.write({
 *   tenant: "acme",
 *   scope: "earth",
 *   entity: "world",
 *   event: { type: "created" },
 *   state: { name: "Earth" },
 *   expectedVersion: 0,
 * });
 * for await (const { seq, event } of worlds.follow({ tenant: "acme", scope: "earth" })) {
 *   console.log(seq, event.type);
 *   break;
 * }
 * ```
 *
 * @module
 */

export { Feed } from "./feed.ts";
export type { EntityState, Snapshot } from "./entity_state.ts";
export type { FeedPlan } from "./explain_feed.ts";
export type { FeedBroadcast } from "./feed_broadcast.ts";
export type { FeedEvent } from "./feed_event.ts";
export type { FeedOptions } from "./feed_options.ts";
export type { FeedStats } from "./feed_stats.ts";
export type { FeedWrite, FeedWritten } from "./feed_write.ts";
export type { FollowOptions } from "./follow_options.ts";
export type { FeedRun, RunOptions } from "./run_feed.ts";
export { TenantError } from "./tenant_error.ts";
export { VersionConflictError } from "./version_conflict_error.ts";
export type { WaitForOptions } from "./wait_for_event.ts";
export { WatermarkError } from "./watermark_error.ts";
export { report } from "./latency/report.ts";
export type { LatencyReport } from "./latency/report.ts";
export type { LatencySample } from "./latency/sample.ts";
export { summarize } from "./latency/summarize.ts";
export type {
  LatencyGroup,
  LatencyObjective,
  LatencySegment,
  LatencySummary,
  LatencyVerdict,
  Percentiles,
  SummarizeOptions,
} from "./latency/summarize.ts";
export type { FeedTables, ScopeKey } from "../driver/dialect.ts";
