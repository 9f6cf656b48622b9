/** What a handler decided about its message. Made by `ack`, `retry` and `drop`. */
export type Outcome =
  | { readonly kind: "ack" }
  | { readonly kind: "retry" }
  | { readonly kind: "drop"; readonly reason?: string };

/**
 * The message is done: its row is deleted. A handler that returns nothing acks, unless its signal has
 * aborted: then it has been cut short.
 */
export function ack(): Outcome {
  return { kind: "ack" };
}

/** The message is to be delivered again, at once. */
export function retry(): Outcome {
  return { kind: "retry" };
}

/**
 * The message is given up: its row is deleted, as by `ack`, but it counts as dropped.
 *
 * @param reason why, for the log
 */
export function drop(reason?: string): Outcome {
  return reason === undefined ? { kind: "drop" } : { kind: "drop", reason };
}

/** Whether a value is an outcome. */
export function isOutcome(value: unknown): value is Outcome {
  const kind = (value as Outcome | undefined | null)?.kind;
  return kind === "ack" || kind === "retry" || kind === "drop";
}
