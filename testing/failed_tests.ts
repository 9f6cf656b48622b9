import type { Trace } from "./trace.ts";

/** The traces of apps of which an assertion has failed, or whose time could not pass. */
export const failedTests: WeakSet<Trace> = new WeakSet();
