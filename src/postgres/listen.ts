import type { QueryResult, SqlValue } from "../driver/driver.ts";
import type { Listening, NotificationListener } from "../driver/listen.ts";
import { deadline, every, uniqueText } from "../driver/real_time.ts";
import { ClosedError, DriverError } from "../errors.ts";
import type { ListeningSql, ListeningSqlEvents } from "./client.ts";
import { failure } from "./failure.ts";
import { quote } from "./quote.ts";

/** What listening needs of a database. */
export interface ListenOptions {
  /** The address without its password, for messages. */
  readonly label: string;
  /** Makes a client of one connection. */
  readonly connect: (events: ListeningSqlEvents) => ListeningSql;
  /** Runs a statement on another connection. */
  readonly query: (text: string, params: readonly SqlValue[]) => Promise<QueryResult>;
}

/**
 * Listens on a connection of its own, which is looked at every 10 s and made again when it is gone.
 *
 * @throws {DriverError} `unusable` if what is notified on another connection does not arrive
 */
export async function listen(
  options: ListenOptions,
  channel: string,
  listener: NotificationListener,
): Promise<Listening> {
  const listening = new ListeningConnection(options, channel, listener);
  try {
    await listening.open();
    return listening;
  } catch (error) {
    await listening.close();
    throw error;
  }
}

class ListeningConnection implements Listening {
  readonly #options: ListenOptions;
  readonly #channel: string;
  readonly #listener: NotificationListener;
  #client: ListeningSql | undefined;
  #check: { cancel(): void } | undefined;
  #retry: { cancel(): void } | undefined;
  #onProbe: ((payload: string) => void) | undefined;
  #isLost = false;
  #isClosed = false;
  #failures = 0;

  constructor(options: ListenOptions, channel: string, listener: NotificationListener) {
    this.#options = options;
    this.#channel = channel;
    this.#listener = listener;
  }

  async open(): Promise<void> {
    await this.#connect();
    await this.#probe();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#check?.cancel();
    this.#retry?.cancel();
    const client = this.#client;
    this.#client = undefined;
    await client?.end({ timeout: SECONDS_TO_CLOSE });
  }

  async #connect(): Promise<void> {
    const client: ListeningSql = this.#options.connect({
      onnotify: (channel, payload) => {
        if (client === this.#client && channel === this.#channel) this.#receive(payload);
      },
      onclose: () => {
        if (client === this.#client) this.#lose(new Error("The connection was closed"));
      },
    });
    this.#client = client;
    await this.#ask(client, `LISTEN ${quote(this.#channel)}`);
    if (client !== this.#client) throw this.#error(new Error("The connection was closed"));
    this.#check = every(BETWEEN_CHECKS, () => this.#look(client));
  }

  #receive(payload: string): void {
    if (payload.startsWith(PROBE)) this.#onProbe?.(payload);
    else this.#listener.receive(payload);
  }

  /** A notification must come from another connection to this one. */
  async #probe(): Promise<void> {
    const probe = PROBE + uniqueText();
    const arrived = new Promise<void>((resolve) => {
      this.#onProbe = (payload) => {
        if (payload === probe) resolve();
      };
    });
    await this.#options.query(NOTIFY, [this.#channel, probe]);
    await deadline(PATIENCE, arrived, () =>
      new DriverError(
        "unusable",
        `Cannot listen in the Postgres database ${this.#options.label}: what is notified on one ` +
          `connection does not arrive on another, as behind a pooler that gives each transaction ` +
          `another connection to the server; connect to the server directly, or set pool_mode = ` +
          `session in PgBouncer`,
      ));
    this.#onProbe = undefined;
  }

  /** A connection whose other end is gone without a word answers nothing. */
  async #look(client: ListeningSql): Promise<void> {
    try {
      await this.#ask(client, "SELECT 1");
    } catch (error) {
      if (client === this.#client) this.#lose(error);
    }
  }

  async #ask(client: ListeningSql, text: string): Promise<void> {
    const late = () => new Error(`The server did not answer within ${PATIENCE / 1000} s`);
    try {
      await deadline(PATIENCE, Promise.resolve(client.unsafe(text)), late);
    } catch (cause) {
      throw this.#error(cause);
    }
  }

  #lose(cause: unknown): void {
    const client = this.#client;
    this.#client = undefined;
    this.#check?.cancel();
    client?.end({ timeout: 0 }).catch(() => {});
    if (this.#isClosed) return;
    if (!this.#isLost) this.#listener.lost(this.#error(cause));
    this.#isLost = true;
    const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** Math.min(this.#failures++, 10));
    this.#retry?.cancel();
    const retry = this.#retry = every(wait, () => {
      retry.cancel();
      void this.#reconnect();
    });
  }

  async #reconnect(): Promise<void> {
    try {
      await this.#connect();
    } catch (error) {
      // Its client may have told of its end already.
      if (this.#client !== undefined) this.#lose(error);
      return;
    }
    this.#failures = 0;
    this.#isLost = false;
    if (!this.#isClosed) this.#listener.restored();
  }

  #error(cause: unknown): DriverError {
    if (cause instanceof DriverError) return cause;
    if (this.#isClosed) cause = new ClosedError("It was closed");
    const { kind, message } = failure(
      cause,
      `listen in the Postgres database ${this.#options.label}`,
    );
    return new DriverError(kind === "other" ? "disconnected" : kind, message, { cause });
  }
}

/** Sends a notification. */
export const NOTIFY = "SELECT pg_notify($1, $2)";
const PROBE = "holdfast probe ";
/** In milliseconds. */
const BETWEEN_CHECKS = 10_000;
const PATIENCE = 5_000;
const FIRST_WAIT = 200;
const LONGEST_WAIT = 30_000;
const SECONDS_TO_CLOSE = 1;
