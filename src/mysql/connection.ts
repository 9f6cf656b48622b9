import type { SqlValue } from "../driver/driver.ts";
import { deadline, monotonic } from "../driver/real_time.ts";
import { DriverError } from "../errors.ts";
import type { ClientConnection, ClientResult, Done } from "./client.ts";
import { excerpt, failure, noAnswer } from "./failure.ts";
import { lostBefore, tooLarge } from "./refusals.ts";
import {
  readServer,
  type Sending,
  type Server,
  SERVER_QUERY,
  settingStatements,
} from "./settings.ts";
import { command, readReply, type Reply, sizeOf } from "./values.ts";

/**
 * One connection of the client. It is latched once it is lost: then everything in flight is
 * rejected, which the client does not always do, and nothing is sent any more.
 */
export class MysqlConnection {
  /** Called back when the connection is lost; belongs to whoever holds the connection. */
  watcher: ((reason: DriverError) => void) | undefined;
  readonly #client: ClientConnection;
  readonly #sending: Sending;
  readonly #waiting = new Set<(reason: unknown) => void>();
  #server: Server | undefined;
  #loss: DriverError | undefined;
  #lastUsed = monotonic();

  private constructor(client: ClientConnection, sending: Sending) {
    this.#client = client;
    this.#sending = sending;
    client.on("error", (error) => this.#lose(error));
    client.on("end", () => this.#lose(CLOSED_BY_SERVER));
  }

  /** Sets a new connection of the client up. */
  static async open(client: ClientConnection, sending: Sending): Promise<MysqlConnection> {
    const connection = new MysqlConnection(client, sending);
    try {
      for (const text of settingStatements(sending)) await connection.run(text, []);
      const { rows: [row] } = await connection.run(SERVER_QUERY, []);
      connection.#server = readServer(row ?? {});
      return connection;
    } catch (error) {
      connection.drop();
      throw error;
    }
  }

  /** What it is connected to. */
  get server(): Server {
    return this.#server!;
  }

  /** Its number, as far as the client tells. */
  get idOfClient(): bigint | undefined {
    const { threadId } = this.#client;
    return typeof threadId === "number" ? BigInt(threadId) : undefined;
  }

  /** How its idle transactions stay open. */
  get heartbeat(): number {
    return this.#sending.heartbeat;
  }

  /** Whether it is lost, or closed. */
  get isLost(): boolean {
    return this.#loss !== undefined;
  }

  /** Whether statements are in flight. */
  get isBusy(): boolean {
    return this.#waiting.size > 0;
  }

  /** How long nothing was sent, in milliseconds. */
  get idleTime(): number {
    return monotonic() - this.#lastUsed;
  }

  /** Runs one statement. What has no parameters goes as text: MySQL cannot prepare every statement. */
  async run(text: string, params: readonly SqlValue[]): Promise<Reply> {
    const attempt = excerpt(text);
    this.#refuseTooLarge(attempt, text, params);
    const result = await this.#ask(attempt, (done) => {
      const run = command(text, params);
      if (params.length > 0) this.#client.execute(run, done);
      else this.#client.query(run, done);
    });
    return readReply(result as ClientResult);
  }

  /** Shows the server that somebody is here, and finds out whether the server is. */
  async ping(): Promise<void> {
    await this.#ask("keep a transaction open", (done) => this.#client.ping(done));
  }

  /** Ends the connection at once. */
  drop(): void {
    this.#lose(CLOSED_HERE);
  }

  /** Ends the connection, in good order unless somebody holds it. */
  async close(): Promise<void> {
    if (this.watcher !== undefined || this.isBusy) this.drop();
    if (!this.isLost) {
      this.#loss = failure(CLOSED_HERE, "use a connection");
      this.#client.end(() => {});
    }
    const closed = new Promise<void>((resolve) => {
      if (this.#client.stream.closed) resolve();
      else this.#client.stream.once("close", resolve);
    });
    await deadline(MILLISECONDS_TO_CLOSE, closed, () => new Error("Not closed"))
      .catch(() => this.#client.stream.destroy());
  }

  /** Gives it back to the pool that it came from. */
  release(): void {
    this.#client.release?.();
  }

  async #ask(attempt: string, send: (done: Done) => void): Promise<unknown> {
    if (this.#loss !== undefined) throw lostBefore(attempt, this.#loss);
    const { patience } = this.#sending;
    const answer = Promise.withResolvers<unknown>();
    this.#waiting.add(answer.reject);
    try {
      send((error, result) => error ? answer.reject(error) : answer.resolve(result));
      return await deadline(patience, answer.promise, () => noAnswer(attempt, patience));
    } catch (error) {
      const reason = failure(error, attempt);
      this.#waiting.delete(answer.reject);
      if (reason.kind === "disconnected") this.#lose(error);
      throw reason;
    } finally {
      this.#waiting.delete(answer.reject);
      this.#lastUsed = monotonic();
    }
  }

  /** The client closes gently, which a server that is gone never answers: so the socket goes too. */
  #lose(error: unknown): void {
    if (this.#loss !== undefined) return;
    const cause = error instanceof DriverError && error.cause || error;
    this.#loss = failure(cause, "keep a connection open");
    for (const reject of this.#waiting) reject(cause);
    this.#client.destroy();
    this.#client.stream.destroy();
    this.watcher?.(this.#loss);
  }

  #refuseTooLarge(attempt: string, text: string, params: readonly SqlValue[]): void {
    const size = sizeOf(text, params);
    const largest = this.#server?.largest ?? Infinity;
    if (size > largest) throw tooLarge(attempt, size, largest);
  }
}

const CLOSED_BY_SERVER = Object.assign(
  new Error("The server closed the connection"),
  { code: "PROTOCOL_CONNECTION_LOST" },
);
const CLOSED_HERE = Object.assign(
  new Error("The connection was closed"),
  { code: "PROTOCOL_CONNECTION_LOST" },
);
const MILLISECONDS_TO_CLOSE = 1000;
