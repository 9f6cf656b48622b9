import {
  ack,
  App,
  Broker,
  type Delivery,
  type Inbox,
  inbox,
  json,
  type Outcome,
  type Queue,
  type Subscription,
} from "@holdfast/inbox";
import type { Driver } from "@holdfast/inbox/driver";

/** What the messages of this folder's services are. */
export interface Nap {
  readonly minutes: number;
}

/** A service of one queue, for one test. */
export interface NapService {
  readonly app: App;
  readonly queue: Queue<Nap>;
  readonly subscription: Subscription<Nap>;
}

/** What a test's handler is. */
export type NapHandler = (
  nap: Nap,
  delivery: Delivery,
) => Outcome | void | Promise<Outcome | void>;

/** A service whose leases last one minute, in a table of this name. */
export function napService(
  driver: Driver,
  handler: NapHandler = nap,
  table: string = "naps",
): NapService {
  const naps: Inbox<Nap, Nap, "lease", number, string> = inbox(table, {
    id: "id",
    attempt: "attempt",
    lockedUntil: "locked_until",
    retryAfter: "retry_after",
    payload: json<Nap>("payload"),
  });
  const queue = naps.queue("naps");
  const subscription = queue.subscribe({ lease: { minutes: 1 }, workers: 2 }, handler);
  const broker = new Broker(driver).createTables(naps).include(subscription);
  return { app: new App({ name: "naps" }).withBroker(broker), queue, subscription };
}

async function nap({ minutes }: Nap): Promise<Outcome> {
  await new Promise((resolve) => setTimeout(resolve, minutes * 60_000));
  return ack();
}
