import type { Settlement } from "./claim/claim_form.ts";
import type { Outcome } from "./outcome.ts";

/** What an outcome does to the row. */
export function settlementOf(outcome: Outcome): Settlement {
  switch (outcome.kind) {
    case "ack":
    case "drop":
      return { kind: "remove" };
    case "retry":
      return { kind: "free" };
  }
}
