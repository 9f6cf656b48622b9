import { HoldfastError } from "../src/errors.ts";

/** The virtual clock runs away, or cannot move on. */
export class FakeTimeError extends HoldfastError {
  /** Always `"fake_time"`. */
  override readonly code = "fake_time";
  /** Whether it stands still for a delivery or a statement, or would never come to rest. */
  readonly reason: "stuck" | "endless";

  /** Says why. */
  constructor(reason: "stuck" | "endless", message: string) {
    super(message);
    this.reason = reason;
  }
}
