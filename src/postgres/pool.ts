import type { QueryResult, SqlValue } from "../driver/driver.ts";
import { deadline } from "../driver/real_time.ts";
import type { ListeningSql, ListeningSqlEvents, OwnSql, PostgresSql } from "./client.ts";
import { excerpt, failure, isLeftOver, isStuck, noAnswer } from "./failure.ts";
import { Permits } from "../driver/permits.ts";
import { sharesProcesses } from "./shares_processes.ts";
import { WHO_SERVES, whoServed } from "./sighting.ts";
import { Transaction, type TransactionOptions } from "./transaction.ts";
import { type Reply, send } from "./values.ts";

/** Where connections come from, and how they are used. */
export interface PostgresSource extends TransactionOptions {
  /** The address without its password, for messages. */
  readonly label: string;
  /** How many connections there may be, where the client is our own. */
  readonly connections: number;
  /** Makes a client of our own; one that the caller has made comes as `theirs`. */
  readonly connect: (() => OwnSql) | { readonly theirs: PostgresSql };
  /** Makes a client that listens; absent where the client is the caller's. */
  readonly connectListening?: (events: ListeningSqlEvents) => ListeningSql;
  /** How long what is in flight may take to finish when a client is ended, in seconds. */
  readonly secondsToEnd: number;
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
    const { rows, changes } = await this.#run(text, params);
    return { rows, changes };
  }

  /** Opens a transaction on a connection of its own. */
  async begin(): Promise<Transaction> {
    const transaction = await this.#open();
    try {
      await transaction.applySettings();
      return transaction;
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
  }

  /** Whether a pooler hands connections to the server around between ours. */
  async sharesProcesses(): Promise<boolean> {
    if (whoServed(await this.#run(WHO_SERVES, [])).isDirect) return false;
    const { connect, patience } = this.#source;
    if (typeof connect !== "function") {
      return await sharesProcesses(connect.theirs, connect.theirs, patience);
    }
    const [one, other] = [connect(), connect()];
    try {
      return await sharesProcesses(one, other, patience);
    } finally {
      await Promise.all([one, other].map((client) => client.end({ timeout: SECONDS_TO_CLOSE })));
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

  async #run(text: string, params: readonly SqlValue[]): Promise<Reply> {
    await this.#permits.take();
    try {
      return await this.#withoutLeftOvers((client) => this.#send(client, text, params));
    } finally {
      this.#permits.give();
    }
  }

  async #send(client: PostgresSql, text: string, params: readonly SqlValue[]): Promise<Reply> {
    const { patience, prepare } = this.#source;
    const attempt = excerpt(text);
    try {
      const sent = send(client, text, params, prepare);
      return await deadline(patience, sent, () => noAnswer(attempt, patience));
    } catch (error) {
      throw failure(error, attempt);
    }
  }

  async #open(): Promise<Transaction> {
    await this.#permits.take();
    try {
      return await this.#withoutLeftOvers(async (client) => {
        const transaction = await Transaction.open(client, this.#source);
        transaction.over.then((reason) => {
          this.#suspect(client, reason);
          this.#permits.give();
        });
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
