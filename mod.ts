/**
 * Holdfast lets a service use its own database tables as task queues: it claims rows, keeps each
 * claimed row out of every other claim while a handler works on it, and gives it back when the
 * process that held it stops.
 *
 * ```ts
 * import { ack, App, Broker, inbox, json } from "@holdfast/inbox";
 * import { sqlite } from "@holdfast/inbox/sqlite";
 *
 * const jobs = inbox("jobs", {
 *   id: "id",
 *   attempt: "attempt",
 *   lockedUntil: "locked_until",
 *   payload: json<{ name: string }>("payload"),
 * });
 * const greetings = jobs.queue("greetings");
 * const greet = greetings.subscribe({ lease: { seconds: 10 } }, ({ name }) => {
 *   console.log(`Hello, ${name}`);
 *   return ack();
 * });
 *
 * const broker = new Broker(sqlite(":memory:")).createTables(jobs).include(greet);
 * const app = new App({ name: "greeter", version: "0.1.0" }).withBroker(broker);
 * await using running = await app.start();
 * await app.publish(greetings, { name: "Ada" });
 * ```
 *
 * @module
 */

export { App } from "./src/app.ts";
export type { AppOptions, Hook, HookPoint, StartedApp } from "./src/app.ts";
export type { Component } from "./src/component.ts";
export type { DeadlineOptions, Deadlines } from "./src/deadlines.ts";
export type { HttpHandler, ServeOptions } from "./src/http_service.ts";
export { Broker } from "./src/broker.ts";
export type {
  BrokerOptions,
  CheckedInbox,
  CheckedSubscription,
  FormRefusal,
} from "./src/broker.ts";
export type { BackoffCurve } from "./src/backoff.ts";
export type { DeadLetterTarget } from "./src/dead_letter.ts";
export type { DatabaseName } from "./src/ddl_text.ts";
export { bytes } from "./src/bytes.ts";
export { codec } from "./src/codec.ts";
export type { BytesCodec, TextCodec } from "./src/codec.ts";
export type { Delivery, DeliveryLog } from "./src/delivery.ts";
export type { MessageId } from "./src/driver/dialect.ts";
export type { Form } from "./src/driver/form.ts";
export type { Duration, DurationLike } from "./src/duration.ts";
export {
  AlreadySettledError,
  ClosedError,
  DeclarationError,
  DriverError,
  HoldfastError,
  LeaseLostError,
  PayloadError,
  PublishError,
  SchemaError,
  ShutdownError,
  TimeoutError,
} from "./src/errors.ts";
export type { DriverErrorKind, SchemaProblem } from "./src/errors.ts";
export type { Headers } from "./src/headers.ts";
export { inbox } from "./src/inbox.ts";
export type { AnyInbox, Inbox } from "./src/inbox.ts";
export { json } from "./src/json.ts";
export { ack, deadLetter, drop, retry, retryAfter } from "./src/outcome.ts";
export type { Outcome } from "./src/outcome.ts";
export type { OwnStatements } from "./src/own_statements.ts";
export type { Payload, Stored } from "./src/payload.ts";
export type {
  ColumnValue,
  Instant,
  PublishColumns,
  PublishIn,
  PublishManyOptions,
  PublishOptions,
  PublishTime,
} from "./src/publish_options.ts";
export type { Published } from "./src/publisher.ts";
export type { AnyQueue, Queue } from "./src/queue.ts";
export type {
  AttemptOf,
  CheckedForm,
  CheckedInboxOptions,
  CheckedRoles,
  FormOf,
  IdRole,
  InboxOptions,
  MessageIn,
  MessageOut,
  NoOptions,
  Roles,
} from "./src/roles.ts";
export { row } from "./src/row.ts";
export type { Row, RowMessage } from "./src/row.ts";
export type { ScheduleOptions } from "./src/schedule.ts";
export { scheduleTable } from "./src/schedule_table.ts";
export type { ScheduleTable } from "./src/schedule_table.ts";
export type { ShutdownReport } from "./src/running_app.ts";
export type { StandardIssue, StandardResult, StandardSchema } from "./src/standard_schema.ts";
export { state } from "./src/state.ts";
export type { StateKey, StateValue } from "./src/state.ts";
export type {
  AnySubscription,
  Backoff,
  BatchHandler,
  BatchReturned,
  CheckedOptions,
  CheckedSubscribeOptions,
  FailureAction,
  Handler,
  HandlerOf,
  OnFailure,
  Returned,
  SubscribeOptions,
  Subscription,
} from "./src/subscription.ts";
export type { QueueReport } from "./src/subscription_loop.ts";
export { text } from "./src/text.ts";
