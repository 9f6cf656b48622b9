import {
  App,
  Broker,
  type Driver,
  type Form,
  type Inbox,
  inbox,
  json,
  type Queue,
  type SubscribeOptions,
  type Subscription,
} from "./holdfast.ts";
import type { Job, JobHandler } from "./lease_service.ts";

/** A table of the suite with every role, in one of the forms. */
export type RolesInbox = Inbox<Job, Job, Form, number, "jobs">;

const ROLES = {
  id: "id",
  group: "queue",
  priority: "priority",
  retryAfter: "due",
  attempt: "attempt",
  payload: json<Job>("payload"),
} as const;
const LEASED = { ...ROLES, lockedUntil: "locked_until" } as const;

/** The table in each form. */
export const ROLES_TABLES: Readonly<Record<Form, RolesInbox>> = {
  "row lock": inbox("jobs", ROLES),
  lease: inbox("jobs", LEASED),
  "advisory lock": inbox("jobs", ROLES, { advisoryLock: "jobs-{id}" }),
};

/** The same tables, in which ack and drop mark the row. */
export const MARKED_TABLES: Readonly<Record<Form, RolesInbox>> = {
  "row lock": inbox("jobs", { ...ROLES, processedAt: "done" }),
  lease: inbox("jobs", { ...LEASED, processedAt: "done" }),
  "advisory lock": inbox(
    "jobs",
    { ...ROLES, processedAt: "done" },
    { advisoryLock: "jobs-{id}" },
  ),
};

/** The same tables by the clock of each host. */
export const HOST_TABLES: Readonly<Record<Form, RolesInbox>> = {
  "row lock": inbox("jobs", ROLES, { clock: "host" }),
  lease: inbox("jobs", LEASED, { clock: "host" }),
  "advisory lock": inbox("jobs", ROLES, { clock: "host", advisoryLock: "jobs-{id}" }),
};

/** The table as FIFO groups. */
export const FIFO_TABLES: Readonly<Record<"row lock" | "lease", RolesInbox>> = {
  "row lock": inbox("jobs", { ...ROLES, fifo: true }),
  lease: inbox("jobs", { ...LEASED, fifo: true }),
};

/** Subscribes a handler to a queue of a table. */
export function subscribe(
  table: RolesInbox,
  name: string,
  handle: JobHandler,
  options: SubscribeOptions<Form, "jobs"> = {},
): Subscription<Job> {
  return table.queue(name).subscribe({ pollInterval: 500, ...options }, handle);
}

/** A service of these subscriptions, over one table. */
export function rolesService(
  driver: Driver,
  table: RolesInbox,
  ...subscriptions: readonly Subscription<Job>[]
): App {
  const broker = new Broker(driver).createTables(table).include(...subscriptions);
  return new App({ name: "suite" }).withBroker(broker);
}

/** A queue as messages are published to it. */
export function queueOf(table: RolesInbox, name: string): Queue<Job> {
  return table.queue(name);
}
