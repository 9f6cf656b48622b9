/**
 * Tests of services that are built on Holdfast: the app that production runs, on virtual time or on
 * real time.
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
export { LeakError, TestApp } from "./test_app.ts";
export type { LiveTestAppOptions, TestAppOptions } from "./test_app.ts";
export type { PendingTimer, TestTime, TimerKind } from "./test_time.ts";
export { Trace } from "./trace.ts";
export type { TraceEntry } from "./trace.ts";
export type { AppEvent, DeliveryRecord } from "../src/runtime.ts";
