/** Compile-time tests: `deno check` is what fails. The test at the end runs what can run. */

import assert from "node:assert/strict";
import * as v from "valibot";
import { z } from "zod";
import {
  ack,
  App,
  Broker,
  bytes,
  type CheckedInbox,
  type CheckedInboxOptions,
  type CheckedRoles,
  type CheckedSubscribeOptions,
  type CheckedSubscription,
  codec,
  DeclarationError,
  type Delivery,
  type Form,
  type Inbox,
  inbox,
  json,
  type Queue,
  type Row,
  row,
  type SubscribeOptions,
  type Subscription,
  text,
} from "../mod.ts";
import { mysqlTx } from "./mysql/mod.ts";
import { postgres, postgresTx } from "./postgres/mod.ts";
import { sqlite, type SqliteForm, type SqliteTx, sqliteTx } from "./sqlite/mod.ts";

type Equals<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true
  : false;

/** Compiles only for `true`. */
function holds<_T extends true>(): void {}

interface Report {
  readonly id: number;
  readonly pages: number;
}

const leased = inbox("leased", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: json<Report>("payload"),
});
const uncounted = inbox("uncounted", {
  id: "id",
  lockedUntil: "locked_until",
  payload: json<Report>("payload"),
});
const plain = inbox("plain", { id: "id", payload: json<Report>("payload") });

const keyed = inbox(
  "keyed",
  { id: "id", attempt: "attempt", payload: json<Report>("payload") },
  { advisoryLock: "reports-{id}" },
);

const zodSchema = z.object({
  at: z.string().transform((text) => new Date(text)),
  copies: z.number().default(1),
});
const zodded = inbox("zodded", {
  id: "id",
  lockedUntil: "locked_until",
  payload: json("payload", zodSchema),
});
const valibotSchema = v.object({
  at: v.pipe(v.string(), v.transform((text) => new Date(text))),
  copies: v.optional(v.number(), 1),
});
const valibotted = inbox("valibotted", {
  id: { column: "id", generate: () => crypto.randomUUID() },
  lockedUntil: "locked_until",
  payload: json("payload", valibotSchema),
});

const subscription = leased.queue().subscribe(() => {});
const plainSubscription = plain.queue().subscribe(() => {});

/** Never called: what is in here need only compile, or not. */
export function compiles(): void {
  // What inbox infers.
  holds<Equals<typeof leased, Inbox<Report, Report, "lease", number, "leased">>>();
  holds<Equals<typeof uncounted, Inbox<Report, Report, "lease", undefined, "uncounted">>>();
  holds<Equals<typeof plain, Inbox<Report, Report, "row lock", undefined, "plain">>>();
  holds<Equals<typeof keyed, Inbox<Report, Report, "advisory lock", number, "keyed">>>();
  holds<
    Equals<
      typeof zodded,
      Inbox<
        { at: string; copies?: number | undefined },
        { at: Date; copies: number },
        "lease",
        undefined,
        "zodded"
      >
    >
  >();
  holds<
    Equals<
      typeof valibotted,
      Inbox<
        { at: string; copies?: number | undefined },
        { at: Date; copies: number },
        "lease",
        undefined,
        "valibotted"
      >
    >
  >();
  const coded = inbox("coded", {
    id: "id",
    lockedUntil: "locked_until",
    payload: codec("payload", { encode: (date: Date) => date.toISOString(), decode: Number }),
  });
  holds<Equals<typeof coded, Inbox<Date, number, "lease", undefined, "coded">>>();
  const asText = inbox("texts", { id: "id", payload: text("payload") });
  holds<Equals<typeof asText, Inbox<string, string, "row lock", undefined, "texts">>>();
  const asBytes = inbox("blobs", { id: "id", payload: bytes("payload") });
  holds<Equals<typeof asBytes extends Inbox<infer In> ? In : never, Uint8Array>>();

  // What a handler gets.
  leased.queue().subscribe((message, delivery) => {
    holds<Equals<typeof message, Report>>();
    holds<Equals<typeof delivery, Delivery<number, false>>>();
    holds<Equals<typeof delivery.attempt, number>>();
    holds<Equals<typeof delivery.id, bigint | string>>();
    return delivery.attempt > 1 ? ack() : undefined;
  });
  uncounted.queue().subscribe({ workers: 2 }, async (message, delivery) => {
    holds<Equals<typeof message, Report>>();
    holds<Equals<typeof delivery.attempt, undefined>>();
    await Promise.resolve();
  });
  zodded.queue().subscribe({ lease: { seconds: 5 } }, (message) => {
    holds<Equals<typeof message, { at: Date; copies: number }>>();
  });
  valibotted.queue().subscribe((message) => {
    holds<Equals<typeof message, { at: Date; copies: number }>>();
  });
  coded.queue().subscribe((message) => holds<Equals<typeof message, number>>());

  // One handler fits every table of its message.
  const handler = (message: Report, delivery: Delivery): void => {
    delivery.log.info("{pages} pages", { pages: message.pages });
  };
  leased.queue().subscribe(handler);
  uncounted.queue().subscribe(handler);
  plain.queue().subscribe({ workers: 3 }, handler);
  leased.queue().subscribe({ lease: 5_000 }, handler);

  // A handler that needs the attempt does not fit a table without it.
  const counting = (_: Report, { attempt }: Delivery<number>): void => void attempt.toFixed();
  leased.queue().subscribe(counting);
  // @ts-expect-error delivery.attempt is undefined there
  uncounted.queue().subscribe(counting);
  // @ts-expect-error delivery.attempt may be undefined
  leased.queue().subscribe((_, delivery) => void delivery.attempt.length);
  // @ts-expect-error delivery.attempt is undefined
  uncounted.queue().subscribe((_, delivery) => void delivery.attempt.toFixed());
  // @ts-expect-error a handler of something else
  leased.queue().subscribe((_message: string) => {});
  // @ts-expect-error a handler returns an outcome or nothing
  leased.queue().subscribe(() => 5);
  // @ts-expect-error a handler returns an outcome or nothing
  leased.queue().subscribe(() => Promise.resolve("ack"));
}

/** Queues and subscriptions written by hand. Never called. */
export async function written(app: App, broker: Broker): Promise<void> {
  const queues: Queue<Report>[] = [leased.queue(), uncounted.queue("u"), plain.queue()];
  const take = async (queue: Queue<Report>): Promise<void> => {
    await app.publish(queue, { id: 1, pages: 2 });
    await broker.publish(queue, { id: 1, pages: 2 });
    queue.subscribe((report, delivery) => {
      holds<Equals<typeof report, Report>>();
      holds<Equals<typeof delivery.attempt, number | undefined>>();
    });
  };
  for (const queue of queues) await take(queue);
  await take(leased.queue());
  const inOut: Queue<
    { at: string; copies?: number | undefined },
    { at: Date; copies: number }
  > = zodded.queue();
  await app.publish(inOut, { at: "2026-01-31" });
  // @ts-expect-error what is published is not what is delivered
  const _sameInOut: Queue<{ at: Date; copies: number }> = zodded.queue();
  // @ts-expect-error another message
  const _other: Queue<string> = leased.queue();
  const subscriptions: Subscription<Report>[] = [
    subscription,
    plainSubscription,
    uncounted.queue().subscribe(() => {}),
  ];
  void subscriptions;
}

/** What goes with the options of a subscription. Never called. */
export function options(): void {
  const queue = leased.queue();
  queue.subscribe({ batch: 10 }, (messages, deliveries) => {
    holds<Equals<typeof messages, readonly Report[]>>();
    holds<Equals<typeof deliveries, readonly Delivery<number, false>[]>>();
    return messages.map(() => ack());
  });
  queue.subscribe({ transactional: true, maxAttempts: 3 }, async (_, delivery) => {
    holds<Equals<typeof delivery, Delivery<number, true>>>();
    postgresTx(delivery);
    mysqlTx(delivery);
    await sqliteTx(delivery);
  });
  queue.subscribe({ maxAttempts: 3, deadLetter: uncounted }, (_, delivery) => {
    // @ts-expect-error the handler has no transaction
    postgresTx(delivery);
  });
  // @ts-expect-error a batch handler gets lists
  queue.subscribe({ batch: 10 }, ({ pages }) => console.log(pages));
  // @ts-expect-error the table counts no attempts
  uncounted.queue().subscribe({ maxAttempts: 3 }, () => ack());
  holds<
    Equals<
      SubscribeOptions<"lease", "uncounted", undefined>["maxAttempts"],
      '"uncounted" counts no attempts: give it the role attempt' | undefined
    >
  >();
  const noSuchOption = { retries: 3 };
  const refusal: CheckedSubscribeOptions<typeof noSuchOption> =
    "retries is not an option of a subscription: options are workers, batch, transactional, lease, pollInterval, maxAttempts, deadLetter, backoff, onFailure, timeout";
  // @ts-expect-error retries is not an option
  queue.subscribe(noSuchOption, () => ack());
  // One handler fits every form, transactional or not.
  const handle = (report: Report, delivery: Delivery): void => console.log(report, delivery);
  queue.subscribe({ transactional: true }, handle);
  uncounted.queue().subscribe({ workers: 2 }, handle);
  plain.queue().subscribe(handle);
  void refusal;
}

/** A caller's transaction is of the broker's own database. Never called. */
export async function transactions(): Promise<void> {
  const broker = new Broker(postgres("postgres://localhost/reports"));
  await broker.transaction(async (tx) => {
    await broker.publish(leased.queue(), { id: 1, pages: 2 }, { tx });
    await broker.publishMany(leased.queue(), [{ id: 1, pages: 2 }], {
      tx,
      each: ({ id }) => ({ key: `${id}` }),
    });
  });
  await broker.publish(leased.queue(), { id: 1, pages: 2 }, { tx: { query: () => [] } });
  // @ts-expect-error a handle of SQLite is no transaction of Postgres
  await broker.publish(leased.queue(), { id: 1, pages: 2 }, { tx: { prepare: () => {} } });
}

/** Publishing. Never called. */
export async function publishes(app: App): Promise<void> {
  const broker = new Broker(sqlite(":memory:"));
  await app.publish(leased.queue(), { id: 1, pages: 2 });
  await broker.publish(leased.queue(), { id: 1, pages: 2 });
  await app.publish(zodded.queue(), { at: "2026-01-31" });
  await app.publish(valibotted.queue(), { at: "2026-01-31", copies: 2 });
  await app.publish(leased.queue(), { id: 1, pages: 2 }, { delay: { minutes: 5 }, priority: 3 });
  await broker.publish(leased.queue(), { id: 1, pages: 2 }, { at: new Date(0), columns: { a: 1 } });
  // @ts-expect-error delay and at exclude each other
  await app.publish(leased.queue(), { id: 1, pages: 2 }, { delay: 1, at: new Date(0) });
  // @ts-expect-error colour is not an option
  await app.publish(leased.queue(), { id: 1, pages: 2 }, { colour: "a" });
  // @ts-expect-error the input is published, not the output
  await app.publish(zodded.queue(), { at: new Date(), copies: 1 });
  // @ts-expect-error the input is published, not the output
  await broker.publish(valibotted.queue(), { at: new Date() });
  // @ts-expect-error pages is missing
  await app.publish(leased.queue(), { id: 1 });
  // @ts-expect-error pages is a number
  await broker.publish(leased.queue(), { id: 1, pages: "2" });
  // @ts-expect-error an unknown property
  await app.publish(leased.queue(), { id: 1, pages: 2, colour: "red" });
  // @ts-expect-error not a message at all
  await app.publish(leased.queue(), "report");
}

/** What cannot work does not compile, and says why. Never called. */
export function refusals(): void {
  const broker = new Broker(sqlite(":memory:"));
  holds<Equals<typeof broker, Broker<"SQLite", SqliteForm, SqliteTx>>>();

  // A table whose form the database lacks.
  broker.createTables(leased, uncounted).include(subscription);
  // @ts-expect-error SQLite has no row locks
  broker.createTables(plain);
  // @ts-expect-error SQLite has no row locks
  broker.createTables(leased, plain);
  // @ts-expect-error SQLite has no row locks
  broker.include(plainSubscription);
  // @ts-expect-error SQLite has no row locks
  broker.include(subscription, plainSubscription);

  const inboxRefusal: CheckedInbox<typeof plain, "SQLite", SqliteForm> =
    'SQLite has no row locks: give "plain" the role lockedUntil (lease form) or the option advisoryLock';
  holds<
    Equals<
      CheckedInbox<typeof plain, "SQLite", SqliteForm>,
      'SQLite has no row locks: give "plain" the role lockedUntil (lease form) or the option advisoryLock'
    >
  >();
  const subscriptionRefusal: CheckedSubscription<typeof plainSubscription, "SQLite", SqliteForm> =
    'SQLite has no row locks: give "plain" the role lockedUntil (lease form) or the option advisoryLock';
  holds<
    Equals<
      CheckedSubscription<typeof plainSubscription, "SQLite", SqliteForm>,
      'SQLite has no row locks: give "plain" the role lockedUntil (lease form) or the option advisoryLock'
    >
  >();
  holds<Equals<CheckedInbox<typeof leased, "SQLite", SqliteForm>, typeof leased>>();
  holds<
    Equals<CheckedSubscription<typeof subscription, "SQLite", SqliteForm>, typeof subscription>
  >();
  holds<Equals<CheckedInbox<typeof plain, "PostgreSQL", Form>, typeof plain>>();

  // A role that does not exist.
  const roles = { id: "id", payload: json<Report>("payload"), locked_until: "locked_until" };
  const roleRefusal: CheckedRoles<typeof roles, "jobs"> =
    'locked_until is not a role: describe "jobs" with id, payload, headers, group, fifo, partitionKey, priority, retryAfter, attempt, processedAt, lockedUntil, uniqueKey, lastError';
  holds<
    Equals<
      CheckedRoles<typeof roles, "jobs">,
      'locked_until is not a role: describe "jobs" with id, payload, headers, group, fifo, partitionKey, priority, retryAfter, attempt, processedAt, lockedUntil, uniqueKey, lastError'
    >
  >();
  // @ts-expect-error locked_until is not a role
  inbox("jobs", { id: "id", payload: json<Report>("payload"), locked_until: "locked_until" });
  // @ts-expect-error locked_until is not a role, also where the roles are a variable
  inbox("jobs", roles);
  // Without a payload, and with row(), the row itself is the message.
  inbox("jobs", { id: "id" }).queue().subscribe((message) => {
    holds<Equals<typeof message, Row>>();
  });
  inbox("jobs", { id: "id", payload: row<Report>() }).queue().subscribe((message) => {
    holds<Equals<typeof message, Report>>();
  });
  // @ts-expect-error the role id is missing
  inbox("jobs", { payload: json<Report>("payload") });
  // @ts-expect-error the payload has a codec
  inbox("jobs", { id: "id", payload: "payload" });
  // @ts-expect-error an id that the service makes has a function for it
  inbox("jobs", { id: { column: "id" }, payload: json<Report>("payload") });
  // @ts-expect-error the roles are missing
  inbox("jobs");

  // Two forms at once, FIFO beside an advisory lock, FIFO without groups.
  const leasedRoles = { id: "id", lockedUntil: "until", payload: json<Report>("payload") } as const;
  const key = { advisoryLock: "reports-{id}" } as const;
  const twoForms: CheckedRoles<typeof leasedRoles, "jobs", typeof key> =
    '"jobs" cannot have two forms: take away the role lockedUntil (lease form) or the option advisoryLock';
  // @ts-expect-error two forms at once
  inbox("jobs", leasedRoles, key);
  const fifoRoles = { id: "id", group: "g", fifo: true, payload: json<Report>("payload") } as const;
  const fifoBesideLock: CheckedRoles<typeof fifoRoles, "jobs", typeof key> =
    '"jobs" cannot be fifo in the advisory lock form: take away fifo, and give all rows of a group one key, or give it the role lockedUntil in place of the option advisoryLock';
  // @ts-expect-error FIFO beside an advisory lock
  inbox("jobs", fifoRoles, key);
  const groupless = { id: "id", fifo: true, payload: json<Report>("payload") } as const;
  const fifoWithoutGroups: CheckedRoles<typeof groupless, "jobs"> =
    '"jobs" cannot be fifo without groups: give it the role group';
  // @ts-expect-error FIFO without groups
  inbox("jobs", groupless);
  const noSuchOption = { lock: "reports" } as const;
  const unknownOption: CheckedInboxOptions<typeof noSuchOption, "jobs"> =
    'lock is not an option of "jobs": options are advisoryLock, clock, statements';
  // @ts-expect-error lock is not an option
  inbox("jobs", { id: "id", payload: json<Report>("payload") }, { lock: "reports" });
  // @ts-expect-error a clock is the database's or the host's
  inbox("jobs", { id: "id", payload: json<Report>("payload") }, { clock: "server" });
  inbox("jobs", fifoRoles);
  broker.createTables(keyed).include(keyed.queue().subscribe(() => {}));
  void [twoForms, fifoBesideLock, fifoWithoutGroups, unknownOption];

  // The lease of a table that has none.
  const leaseRefusal: SubscribeOptions<"row lock", "plain">["lease"] =
    '"plain" holds rows by row lock, which has no lease: give it the role lockedUntil';
  holds<
    Equals<
      SubscribeOptions<"row lock", "plain">["lease"],
      '"plain" holds rows by row lock, which has no lease: give it the role lockedUntil' | undefined
    >
  >();
  // @ts-expect-error "plain" has no lease
  plain.queue().subscribe({ lease: { minutes: 1 } }, () => {});
  // @ts-expect-error "plain" has no lease
  plain.queue().subscribe({ lease: 1_000 }, () => {});

  // Options that do not exist.
  // @ts-expect-error concurrency is not an option
  leased.queue().subscribe({ concurrency: 5 }, () => {});
  // @ts-expect-error weeks is not a unit
  leased.queue().subscribe({ lease: { weeks: 1 } }, () => {});
  // @ts-expect-error notify is not an option
  new Broker(sqlite(":memory:"), { notify: true });
  // @ts-expect-error graceful is not an option
  new App({ name: "app", graceful: true });
  // @ts-expect-error a handler is missing
  leased.queue().subscribe({ workers: 1 });
  // @ts-expect-error normal or full
  sqlite("jobs.db", { synchronous: "off" });
  void [inboxRefusal, subscriptionRefusal, roleRefusal, leaseRefusal];
}

Deno.test("what the types refuse is refused at run time with the same text", () => {
  const refusal: CheckedInbox<typeof plain, "SQLite", SqliteForm> =
    'SQLite has no row locks: give "plain" the role lockedUntil (lease form) or the option advisoryLock';
  const broker = new Broker(sqlite(":memory:"));
  const says = (error: Error): boolean => {
    assert(error instanceof DeclarationError);
    assert.equal(error.message, refusal);
    return true;
  };
  assert.throws(() => broker.createTables(plain as never), says);
  assert.throws(() => broker.include(plainSubscription as never), says);
});
