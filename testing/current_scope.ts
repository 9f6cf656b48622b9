import { timeScope } from "../src/clock.ts";
import { VirtualScope } from "./virtual_scope.ts";

/** The virtual time in which the code that calls this runs; `undefined` where time is real. */
export function currentScope(): VirtualScope | undefined {
  const scope = timeScope.getStore();
  return scope instanceof VirtualScope && scope.clock.active ? scope : undefined;
}
