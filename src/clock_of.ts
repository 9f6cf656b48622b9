import { databaseNow, now } from "./clock.ts";
import type { Clock } from "./driver/dialect.ts";
import type { AnyInbox } from "./inbox.ts";
import type { Runtime } from "./runtime.ts";

/** Whose clock decides what is due in a table. */
export function clockOf({ clock }: AnyInbox, runtime: Runtime): Clock {
  return clock === "host" ? "given" : runtime.clock;
}

/** What statements about a table take for the present, see `databaseNow`. */
export function presentOf({ clock }: AnyInbox): () => number {
  return clock === "host" ? now : databaseNow;
}
