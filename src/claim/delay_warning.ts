import { logOf } from "../log.ts";

/** Tells once that a queue's table has no column in which a delay can be kept. */
export class DelayWarning {
  readonly #queue: string;
  #told = false;

  constructor(queue: string) {
    this.#queue = queue;
  }

  /** A delay was asked for, and could not be kept. */
  tell(): void {
    if (this.#told) return;
    this.#told = true;
    LOG.warn(
      "Queue {queue} cannot delay messages, and delivers them again at once: give its table the " +
        "role retryAfter",
      { queue: this.#queue },
    );
  }
}

const LOG = logOf("claim");
