import type { DeliveryRecord } from "../src/runtime.ts";
import type { AppDriver } from "./app_driver.ts";
import type { PendingTimer } from "./test_time.ts";

/** What there is of an app that has stopped. */
export interface Remains {
  readonly timers: readonly PendingTimer[];
  /** The deliveries whose handlers have not ended. */
  readonly handlers: readonly DeliveryRecord[];
  readonly drivers: readonly AppDriver[];
}

/** What of it should not be there: a line for each, with what to do. */
export function leaksOf({ timers, handlers, drivers }: Remains): readonly string[] {
  return [
    ...timers.filter(({ refed }) => refed).map(describeTimer),
    ...handlers.map(describeHandler),
    ...drivers.flatMap(({ name, sessions }) =>
      sessions.map(({ description }) => `- of ${name}, ${description}`)
    ),
  ];
}

function describeTimer({ kind, delivery, stack }: PendingTimer): string {
  const owner = delivery === undefined ? "" : ` of ${delivery}`;
  return `- a timer (${kind})${owner} that was never cleared; clear it when the work is done that ` +
    `needs it; it was created here:\n${stack}`;
}

function describeHandler({ queue, id }: DeliveryRecord): string {
  return `- the handler of message ${id} of queue "${queue}", which did not heed delivery.signal; ` +
    `let it return once that aborts`;
}
