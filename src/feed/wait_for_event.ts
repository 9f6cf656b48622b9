import { monotonic } from "../clock.ts";
import type { ScopeKey } from "../driver/dialect.ts";
import { type Duration, toMilliseconds } from "../duration.ts";
import { ClosedError, TimeoutError } from "../errors.ts";
import { refuseUnknownOptions } from "../refuse_unknown_options.ts";
import { Wake } from "../wake.ts";
import { checkName } from "./check_name.ts";
import { checkScope } from "./check_scope.ts";
import type { FeedMessage } from "./feed_message.ts";
import type { Ongoing } from "./ongoing.ts";

/** Which event is waited for. */
export interface WaitForOptions extends ScopeKey {
  /** Its id. */
  readonly id: string;
  /** How long; default 30 s. */
  readonly timeout?: Duration;
}

/** What is waited for, with how long in milliseconds. */
export interface Wanted {
  readonly key: ScopeKey;
  readonly id: string;
  readonly timeout: number;
}

/** How an event is waited for. */
export interface Waiting<Found> {
  /** In milliseconds. */
  readonly pollInterval: number;
  readonly ongoing: Ongoing;
  /** The event, if it is there. */
  find(): Promise<Found | undefined>;
  /** Calls back for each event that is told, and with nothing where some may have been missed. */
  listen(callback: (message: FeedMessage | undefined) => void): () => void;
}

/**
 * Which event is meant, and how long it is waited for.
 *
 * @throws {TenantError} without a tenant
 * @throws {DeclarationError} without a scope or an id, or if an option is unknown
 */
export function checkWaitFor(what: string, options: WaitForOptions): Wanted {
  refuseUnknownOptions(what, options, ["tenant", "scope", "id", "timeout"]);
  const key = checkScope(what, options);
  const { id, timeout = 30_000 } = options;
  checkName(what, "id", id);
  return { key, id, timeout: toMilliseconds(timeout, `the timeout: ${what}`) };
}

/**
 * Waits until an event is there: looks when it is told of, and whenever the poll interval has passed.
 *
 * @param what what was attempted, as the error begins
 * @throws {TimeoutError} if it is not there in time
 * @throws {ClosedError} if the feed stops before
 */
export async function waitForEvent<Found>(
  what: string,
  { key, id, timeout }: Wanted,
  { pollInterval, ongoing, find, listen }: Waiting<Found>,
): Promise<Found> {
  const wake = new Wake();
  let isClosed = false;
  const leave = ongoing.add(() => {
    isClosed = true;
    wake.call();
  });
  const unlisten = listen((message) => {
    if (message === undefined || message.id === id) wake.call();
  });
  try {
    const end = monotonic() + timeout;
    for (;;) {
      wake.forget();
      const found = await find();
      if (found !== undefined) return found;
      if (isClosed) throw new ClosedError(`${what}: the app stopped before it was written`);
      const left = end - monotonic();
      if (left <= 0) break;
      await wake.sleep(Math.min(left, pollInterval));
    }
  } finally {
    unlisten();
    leave();
  }
  throw new TimeoutError(
    `Event "${id}" of scope "${key.scope}" was not written within ${timeout} ms`,
  );
}
