import type { Clock } from "./driver/dialect.ts";
import type { AnyInbox } from "./inbox.ts";
import type { Runtime } from "./runtime.ts";

/** Whose clock decides what is due in a table. */
export function clockOf({ clock }: AnyInbox, runtime: Runtime): Clock {
  return clock === "host" ? "given" : runtime.clock;
}
