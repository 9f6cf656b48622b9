import { HoldfastError } from "../src/errors.ts";

/** Something that a test should have ended is left: a timer, a handler, a connection. */
export class LeakError extends HoldfastError {
  /** Always `"leak"`. */
  override readonly code = "leak";
}
