/**
 * Tests of services that are built on Holdfast: the app that production runs, on virtual time or on
 * real time, and a database for each test.
 *
 * ```ts
 * import { ack, App, Broker, inbox, text } from "@holdfast/inbox";
 * import { sqlite } from "@holdfast/inbox/sqlite";
 * import { TestApp } from "@holdfast/inbox/testing";
 *
 * const jobs = inbox("jobs", {
 *   id: "id",
 *   attempt: "attempt",
 *   lockedUntil: "locked_until",
 *   payload: text("payload"),
 * });
 * const greet = jobs.queue().subscribe(() => ack());
 * const broker = new Broker(sqlite(":memory:")).createTables(jobs).include(greet);
 *
 * await using app = await TestApp.start(new App({ name: "greeter" }).withBroker(broker));
 * await app.publish(jobs.queue(), "Ada");
 * app.subscriber(greet).assertCalledOnce().assertReceived("Ada").assertSettled(ack());
 * ```
 *
 * @module
 */

export { SubscriberAssertions } from "./assertions.ts";
export { FakeTime, FakeTimeError } from "./fake_time.ts";
export type { FakeTimeOptions } from "./fake_time.ts";
export { LiveTime } from "./live_time.ts";
export { LeakError } from "./leak_error.ts";
export type { DrainOptions, DrainReport } from "./drain.ts";
export type { Match, PartOf } from "./matches.ts";
export { PublishedAssertions } from "./published_assertions.ts";
export { SeamHold } from "./seam_hold.ts";
export type { SeamHoldOptions } from "./seam_hold.ts";
export { TestApp } from "./test_app.ts";
export type {
  DisconnectOptions,
  JoinOptions,
  LiveTestAppOptions,
  TestAppOptions,
} from "./test_app.ts";
export type { AppTime, AppTimeOptions, PendingTimer, TestTime, TimerKind } from "./test_time.ts";
export { TestDatabases } from "./databases/test_databases.ts";
export type { TestDatabasesOptions } from "./databases/test_databases.ts";
export type { TestDatabase } from "./databases/test_database.ts";
export { Trace } from "./trace.ts";
export type { TraceEntry, TraceEvent } from "./trace.ts";
export type { Condition, WaitForOptions } from "./wait_for.ts";
export type { AppEvent, DeliveryRecord, PublishRecord, Seam } from "../src/runtime.ts";
