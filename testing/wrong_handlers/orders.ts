import { type Inbox, inbox, json, type Queue } from "../../mod.ts";

/** What both queues carry. */
export interface Order {
  readonly order: number;
}

/** The table of the services whose handlers are wrong. */
export const jobs: Inbox<Order, Order, "lease", number, "jobs"> = inbox("jobs", {
  id: "id",
  group: "queue",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: json<Order>("payload"),
});

/** Whose handler is wrong. */
export const orders: Queue<Order, Order, "lease", number, "jobs"> = jobs.queue("orders");

/** What a handler of orders may publish to. */
export const receipts: Queue<Order, Order, "lease", number, "jobs"> = jobs.queue("receipts");
