import { backoff, type BackoffCurve } from "../backoff.ts";
import { after, sleep, type Timer } from "../clock.ts";
import { logOf } from "../log.ts";
import { asError } from "../thrown.ts";
import { within } from "../within.ts";
import type { RedisClient, RedisModule } from "./redis_client.ts";

/** What a connection is for. */
export interface RedisConnectionUse {
  /** For the log: `sends`. */
  readonly purpose: string;
  /** Is run on every new connection; one on which it fails is made anew. */
  prepare?(client: RedisClient): Promise<unknown>;
  /** A connection that was lost is there again. */
  restored?(): void;
  /** After so many milliseconds without a probe the connection is probed. */
  readonly probeInterval: number;
}

/** A connection to Redis that is made again, with pauses that grow, whenever it is lost. */
export class RedisConnection {
  readonly client: RedisClient;
  readonly #use: RedisConnectionUse;
  readonly #ended = Promise.withResolvers<void>();
  #lastError: Error | undefined;
  #isOpen = false;
  #isLost = false;
  #probe: Timer | undefined;

  /** Nothing connects yet. The module's client is not one that waits for anybody: commands fail at once. */
  constructor({ Redis }: RedisModule, url: string, use: RedisConnectionUse) {
    this.#use = use;
    const retryStrategy = (attempt: number) => this.#isOpen ? backoff(attempt, RECONNECT) : null;
    this.client = new Redis(url, { ...OPTIONS, retryStrategy });
    // Without a listener the client prints errors.
    this.client.on("error", (error) => this.#lastError = error);
    this.client.on("close", () => this.#lose());
    this.client.on("end", () => this.#ended.resolve());
    this.client.on("ready", () => void this.#restore());
  }

  /**
   * Connects.
   *
   * @throws {Error} if it cannot now; it must then be closed
   */
  async open(): Promise<void> {
    try {
      await this.client.connect();
      await this.#use.prepare?.(this.client);
    } catch (thrown) {
      const cause = this.#lastError ?? asError(thrown, "connect");
      throw new Error(`Cannot connect to Redis: ${cause.message || String(cause)}`, { cause });
    }
    this.#isOpen = true;
    this.#armProbe();
  }

  /** Ends it. */
  async close(): Promise<void> {
    this.#isOpen = false;
    this.#probe?.cancel();
    const { status } = this.client;
    if (status === "end") return;
    this.client.disconnect();
    if (HAS_SOCKET.includes(status)) await within(LONGEST_CLOSE, this.#ended.promise);
    // One that waited to connect again has no end, but a timer of the client's, by which it is gone.
    else await sleep(DISCONNECT_TIMEOUT);
  }

  #lose(): void {
    if (!this.#isOpen || this.#isLost) return;
    this.#isLost = true;
    LOG.warn("The connection to Redis that {purpose} is lost and made again: {error}", {
      purpose: this.#use.purpose,
      error: this.#lastError,
    });
  }

  async #restore(): Promise<void> {
    if (!this.#isOpen) return;
    try {
      await this.#use.prepare?.(this.client);
    } catch {
      this.#reconnect();
      return;
    }
    if (!this.#isOpen) return;
    this.#isLost = false;
    LOG.info("The connection to Redis that {purpose} is there again", {
      purpose: this.#use.purpose,
    });
    this.#use.restored?.();
  }

  /** A connection whose other end is gone without a word would be waited on for ever. */
  #armProbe(): void {
    this.#probe = after(this.#use.probeInterval, () => void this.#check());
  }

  async #check(): Promise<void> {
    try {
      if (this.client.status === "ready") await this.client.ping();
    } catch {
      this.#reconnect();
    }
    if (this.#isOpen) this.#armProbe();
  }

  #reconnect(): void {
    if (this.#isOpen && this.client.status === "ready") this.client.disconnect(true);
  }
}

/** How long the other end may take to close a connection, in milliseconds. */
const DISCONNECT_TIMEOUT = 200;
const RECONNECT: BackoffCurve = { first: 100, cap: 5_000 };
/** Commands never wait for a connection: the broadcast tries again, and no longer than it is told to. */
const OPTIONS = {
  lazyConnect: true,
  connectTimeout: 5_000,
  commandTimeout: 2_000,
  disconnectTimeout: DISCONNECT_TIMEOUT,
  keepAlive: 10_000,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  disableClientInfo: true,
} as const;
/** In milliseconds. */
const LONGEST_CLOSE = 1_000;
const HAS_SOCKET: readonly string[] = ["connecting", "connect", "ready"];
const LOG = logOf("broadcast");
