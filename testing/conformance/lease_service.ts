import {
  App,
  Broker,
  type Delivery,
  type Driver,
  type Inbox,
  inbox,
  json,
  type Outcome,
  type Queue,
  type Subscription,
} from "./holdfast.ts";

/** What the suite's messages are. */
export interface Job {
  readonly name: string;
}

/** The suite's table, whose claims count attempts. */
export const countedJobs: Inbox<Job, Job, "lease", number, "jobs"> = inbox("jobs", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: json<Job>("payload"),
});

/** The suite's table without attempts: the expiry alone tells a holder from the next. */
export const uncountedJobs: Inbox<Job, Job, "lease", undefined, "jobs"> = inbox("jobs", {
  id: "id",
  lockedUntil: "locked_until",
  payload: json<Job>("payload"),
});

/** The suite's table in the row lock form. */
export const lockedJobs: Inbox<Job, Job, "row lock", number, "jobs"> = inbox("jobs", {
  id: "id",
  attempt: "attempt",
  payload: json<Job>("payload"),
});

/** The suite's table in the advisory lock form, in which each row has a lock of its own. */
export const keyedJobs: Inbox<Job, Job, "advisory lock", number, "jobs"> = inbox(
  "jobs",
  { id: "id", attempt: "attempt", payload: json<Job>("payload") },
  { advisoryLock: "jobs-{id}" },
);

/** What a test's handler is. */
export type JobHandler = (
  job: Job,
  delivery: Delivery,
) => Outcome | void | Promise<Outcome | void>;

/** A service of one queue, for one test. */
export interface LeaseService {
  readonly app: App;
  readonly queue: Queue<Job>;
  readonly subscription: Subscription<Job>;
}

/** How a test's service differs. */
export interface LeaseServiceOptions {
  /** Whether claims count attempts; default true. */
  readonly counted?: boolean;
  readonly workers?: number;
  /** In seconds; default 60. */
  readonly lease?: number;
}

/** A service whose handler is the test's, with a lease of a minute unless given. */
export function leaseService(
  driver: Driver,
  handle: JobHandler,
  { counted = true, workers = 1, lease = 60 }: LeaseServiceOptions = {},
): LeaseService {
  const jobs: Inbox<Job, Job, "lease"> = counted ? countedJobs : uncountedJobs;
  const queue = jobs.queue("jobs");
  const subscription = queue.subscribe({ workers, lease: { seconds: lease } }, handle);
  const broker = new Broker(driver).createTables(jobs).include(subscription);
  return { app: new App({ name: "suite" }).withBroker(broker), queue, subscription };
}

/** The same service in the row lock form. */
export function rowLockService(driver: Driver, handle: JobHandler, workers = 1): LeaseService {
  const queue = lockedJobs.queue("jobs");
  const subscription = queue.subscribe({ workers, pollInterval: 500 }, handle);
  const broker = new Broker(driver).createTables(lockedJobs).include(subscription);
  return { app: new App({ name: "suite" }).withBroker(broker), queue, subscription };
}

/** The same service in the advisory lock form. */
export function advisoryLockService(
  driver: Driver,
  handle: JobHandler,
  workers = 1,
): LeaseService {
  const queue = keyedJobs.queue("jobs");
  const subscription = queue.subscribe({ workers, pollInterval: 500 }, handle);
  const broker = new Broker(driver).createTables(keyedJobs).include(subscription);
  return { app: new App({ name: "suite" }).withBroker(broker), queue, subscription };
}
