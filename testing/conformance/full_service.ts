import { type Form, type Inbox, inbox, json } from "./holdfast.ts";
import type { Job } from "./lease_service.ts";

/** A table of the suite with every role but `processedAt` and `fifo`, in one of the forms. */
export type FullInbox = Inbox<Job, Job, Form, number, "jobs">;

const ROLES = {
  id: "id",
  group: "queue",
  priority: "priority",
  retryAfter: "due",
  attempt: "attempt",
  headers: "headers",
  partitionKey: "partition_key",
  uniqueKey: "unique_key",
  lastError: "last_error",
  payload: json<Job>("payload"),
} as const;
const LEASED = { ...ROLES, lockedUntil: "locked_until" } as const;
const BY_ID = { advisoryLock: "jobs-{id}" } as const;

/** The table in each form. */
export const FULL_TABLES: Readonly<Record<Form, FullInbox>> = {
  "row lock": inbox("jobs", ROLES),
  lease: inbox("jobs", LEASED),
  "advisory lock": inbox("jobs", ROLES, BY_ID),
};

/** The same tables, in which ack and drop mark the row. */
export const FULL_MARKED_TABLES: Readonly<Record<Form, FullInbox>> = {
  "row lock": inbox("jobs", { ...ROLES, processedAt: "done" }),
  lease: inbox("jobs", { ...LEASED, processedAt: "done" }),
  "advisory lock": inbox("jobs", { ...ROLES, processedAt: "done" }, BY_ID),
};

/** The forms. */
export const FORMS: readonly Form[] = ["row lock", "lease", "advisory lock"];
