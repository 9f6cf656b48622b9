/**
 * A shop: an HTTP API that takes orders and publishes each one's shipment in the order's transaction,
 * workers that ship, and a schedule. It stops without losing, repeating or refusing anything.
 *
 * @module
 */

import { ack, App, Broker, inbox, json, scheduleTable, state } from "@holdfast/inbox";
import type { Driver, Form } from "@holdfast/inbox/driver";

/** Ships an order; the real one talks to a carrier. */
export type Ship = (order: number, attempt: number) => Promise<void>;

/** How a shop is run. */
export interface ShopOptions<Tx> {
  /** The port of the API; 0 for any that is free. */
  readonly port: number;
  /** Where orders are shipped. */
  readonly ship: Ship;
  /** Writes an order in a transaction of the database, and returns its number. */
  readonly insertOrder: (tx: Tx, item: string) => Promise<number>;
  /** Told where the API listens. */
  readonly onListen?: (address: { readonly port: number }) => void;
}

/** What is to be shipped. */
export const shipments = inbox("shipments", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: json<{ order: number }>("payload"),
});

const carrier = state<Ship>("carrier");

/** Ships orders, several at a time. */
export const ship = shipments.queue().subscribe(
  { workers: 8, pollInterval: { milliseconds: 200 }, lease: { seconds: 10 } },
  async ({ order }, delivery) => {
    await delivery.get(carrier)(order, delivery.attempt);
    return ack();
  },
);

/** What is counted now and then. */
export const counts = inbox("counts", {
  id: "id",
  attempt: "attempt",
  lockedUntil: "locked_until",
  payload: json<{ at: string }>("payload"),
});

/** Where the schedule remembers what it has published. */
export const slots = scheduleTable("slots");

/** Counts the shelves. */
export const count = counts.queue().subscribe(() => ack());

/** The shop over a database. */
export function shop<Name extends string, Forms extends Form, Tx>(
  database: Driver<Name, Forms, Tx>,
  { port, ship: shipOrder, insertOrder, onListen }: ShopOptions<Tx>,
): App {
  const broker = new Broker(database as Driver<string, Form, Tx>)
    .createTables(shipments, counts)
    .include(ship, count);
  return new App({ name: "shop", preStop: { milliseconds: 300 }, drain: { seconds: 10 } })
    .withBroker(broker)
    .onStartup((app) => app.set(carrier, shipOrder))
    .schedule("* * * * * *", counts.queue(), (at) => ({ at: at.toISOString() }), {
      scheduleTable: slots,
    })
    .serve({ port, hostname: "127.0.0.1", onListen }, async (request) => {
      if (request.method !== "POST") return new Response("Give an order", { status: 405 });
      const { item } = await request.json() as { readonly item: string };
      // The order and its shipment are there together, or neither is.
      const order = await broker.transaction(async (tx) => {
        const order = await insertOrder(tx as Tx, item);
        await broker.publish(shipments.queue(), { order }, { tx: tx as Tx });
        return order;
      });
      return Response.json({ order }, { status: 201 });
    });
}
