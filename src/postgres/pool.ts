import type { QueryResult, SqlValue } from "../driver/driver.ts";
import { deadline } from "../driver/real_time.ts";
import type { OwnSql, PostgresSql } from "./client.ts";
import { excerpt, failure, isLeftOver, isStuck, noAnswer } from "./failure.ts";
import { Permits } from "../driver/permits.ts";
import { Transaction } from "./transaction.ts";
import { send, type Sending } from "./values.ts";

/** Where connections come from, and how they are used. */
export interface PostgresSource extends Sending {
  /** The address without its password, for messages. */
  readonly label: string;
  /** How many connections there may be, where the client is our own. */
  readonly connections: number;
  /** Makes a client of our own; one that the caller has made comes as `theirs`. */
  readonly connect: (() => OwnSql) | { readonly theirs: PostgresSql };
  /** How long what is in flight may take to finish when a client is ended, in seconds. */
  readonly secondsToEnd: number;
  /** Server settings that each transaction makes for itself, where no connection comes with them. */
  readonly localSettings: Readonly<Record<string, string>>;
}

/** Connections, by the statement or by the transaction. */
export class PostgresPool {
  readonly #source: PostgresSource;
  readonly #permits: Permits;
  readonly #ending = new Set<Promise<void>>();
  #client: PostgresSql;
  #own: OwnSql | undefined;

  constructor(source: PostgresSource) {
    this.#source = source;
    this.#permits = new Permits(
      typeof source.connect === "function" ? source.connections : Infinity,
    );
    this.#client = this.#connect();
  }

  /** Runs one statement on a connection of its own. */
  async query(text: string, params: readonly SqlValue[]): Promise<QueryResult> {
    await this.#permits.take();
    try {
      return await this.#withoutLeftOvers((client) => this.#send(client, text, params));
    } finally {
      this.#permits.give();
    }
  }

  /** Opens a transaction on a connection of its own. */
  async begin(): Promise<Transaction> {
    const transaction = await this.#open();
    try {
      await this.#applySettings(transaction);
      return transaction;
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
  }

  /**
   * Ends the client, if it is our own, once everything in flight has finished: the client closes a
   * connection that it finds busy, but does not wait until it is closed.
   */
  async close(reason: Error): Promise<void> {
    const allBack = this.#permits.close(reason);
    if (this.#own === undefined) return;
    await deadline(this.#source.secondsToEnd * 1000, allBack, () => reason).catch(() => {});
    await Promise.all([this.#own.end({ timeout: SECONDS_TO_CLOSE }), ...this.#ending]);
  }

  #connect(): PostgresSql {
    const { connect } = this.#source;
    if (typeof connect !== "function") return connect.theirs;
    this.#own = connect();
    return this.#own;
  }

  async #send(
    client: PostgresSql,
    text: string,
    params: readonly SqlValue[],
  ): Promise<QueryResult> {
    const { patience, prepare } = this.#source;
    const attempt = excerpt(text);
    try {
      const sent = send(client, text, params, prepare);
      const { rows, changes } = await deadline(patience, sent, () => noAnswer(attempt, patience));
      return { rows, changes };
    } catch (error) {
      throw failure(error, attempt);
    }
  }

  async #open(): Promise<Transaction> {
    await this.#permits.take();
    try {
      return await this.#withoutLeftOvers(async (client) => {
        const transaction = await Transaction.open(client, this.#source);
        transaction.over.then(() => this.#permits.give());
        transaction.loss.catch((reason) => this.#suspect(client, reason));
        return transaction;
      });
    } catch (error) {
      this.#permits.give();
      throw error;
    }
  }

  /** Each connection may have one error of an earlier statement to give away. */
  async #withoutLeftOvers<T>(attempt: (client: PostgresSql) => Promise<T>): Promise<T> {
    for (let left = MOST_LEFT_OVERS;; left--) {
      const client = this.#client;
      try {
        return await attempt(client);
      } catch (error) {
        this.#suspect(client, error);
        if (left === 0 || !isLeftOver(error)) throw error;
      }
    }
  }

  async #applySettings(transaction: Transaction): Promise<void> {
    const settings = Object.entries(this.#source.localSettings);
    if (settings.length === 0) return;
    const calls = settings.map((_, index) =>
      `set_config($${2 * index + 1}::text, $${2 * index + 2}::text, true)`
    );
    await transaction.query(`SELECT ${calls.join(", ")}`, settings.flat());
  }

  /**
   * The client cannot be told to drop a connection that no longer answers, nor does it get over one
   * that broke with bytes to send. So it is replaced as a whole.
   */
  #suspect(client: PostgresSql, error: unknown): void {
    const old = this.#own;
    if (old === undefined || client !== old || !isStuck(error)) return;
    this.#client = this.#connect();
    const ending = old.end({ timeout: this.#source.secondsToEnd })
      .finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}

const SECONDS_TO_CLOSE = 1;
const MOST_LEFT_OVERS = 20;
