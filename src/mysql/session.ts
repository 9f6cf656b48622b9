import type { LockHolder, QueryResult, Session, SqlValue } from "../driver/driver.ts";
import { DriverError } from "../errors.ts";
import type { MysqlConnection } from "./connection.ts";
import type { ConnectionPool } from "./pool.ts";
import { lostBefore, noTransaction } from "./refusals.ts";
import { Transaction } from "./transaction.ts";

/**
 * A turn on the pool: it takes a connection at the first statement and keeps it until it is
 * released. One that dies while no transaction is open is replaced at the next statement.
 */
export class MysqlSession implements Session {
  readonly #pool: ConnectionPool;
  readonly #lost = new AbortController();
  #taking: Promise<MysqlConnection> | undefined;
  #transaction: Transaction | undefined;
  #beginning = false;

  constructor(pool: ConnectionPool) {
    this.#pool = pool;
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  get handle(): unknown {
    return this.#transaction?.handle;
  }

  async query(text: string, params: readonly SqlValue[] = []): Promise<QueryResult> {
    if (this.#transaction !== undefined) return await this.#transaction.query(text, params);
    const { rows, changes } = await (await this.#connection()).run(text, params);
    return { rows, changes };
  }

  async queryEach(
    text: string,
    paramSets: readonly (readonly SqlValue[])[],
  ): Promise<readonly QueryResult[]> {
    if (paramSets.length === 0) return [];
    if (this.#transaction !== undefined) return await oneByOne(this.#transaction, text, paramSets);
    await this.begin();
    try {
      const results = await oneByOne(this.#transaction!, text, paramSets);
      await this.commit();
      return results;
    } finally {
      await this.rollback();
    }
  }

  async begin(): Promise<void> {
    if (this.#transaction?.isLost) throw lostBefore("begin", undefined);
    if (this.#transaction !== undefined || this.#beginning) {
      throw new DriverError("other", "Cannot begin: this session has a transaction open; end it");
    }
    this.#beginning = true;
    try {
      const connection = await this.#connection();
      this.#transaction = await Transaction.open(connection, (reason) => this.#lose(reason));
    } finally {
      this.#beginning = false;
    }
  }

  async checkpoint(): Promise<void> {
    if (this.#transaction === undefined) throw noTransaction("commit");
    await this.#transaction.checkpoint();
  }

  async commit(): Promise<void> {
    const transaction = this.#transaction;
    if (transaction === undefined) throw noTransaction("commit");
    await transaction.commit();
    this.#forget(transaction);
  }

  async rollback(): Promise<void> {
    const transaction = this.#transaction;
    if (transaction === undefined) return;
    await transaction.rollback();
    this.#forget(transaction);
  }

  async tryLock(key: string): Promise<LockHolder | undefined> {
    if (this.#transaction === undefined) throw noTransaction("take a lock");
    return await this.#transaction.tryLock(key);
  }

  async release(): Promise<void> {
    await this.rollback();
    if (this.#taking !== undefined) await this.#giveBack(this.#taking);
  }

  /** One that is lost is kept: it refuses every further call. */
  #forget(transaction: Transaction): void {
    if (!transaction.isLost && this.#transaction === transaction) this.#transaction = undefined;
  }

  async #connection(): Promise<MysqlConnection> {
    for (;;) {
      const taking = this.#taking ??= this.#pool.take();
      const connection = await taking.catch(() => undefined);
      if (connection?.isLost === false) return connection;
      await this.#giveBack(taking);
      // What was wrong with taking one is for the caller to know.
      await taking;
    }
  }

  async #giveBack(taking: Promise<MysqlConnection>): Promise<void> {
    if (this.#taking !== taking) return;
    this.#taking = undefined;
    await taking.then((connection) => this.#pool.give(connection), () => {});
  }

  #lose(reason: DriverError): void {
    this.#lost.abort(reason);
    if (this.#taking !== undefined) this.#giveBack(this.#taking);
  }
}

async function oneByOne(
  transaction: Transaction,
  text: string,
  paramSets: readonly (readonly SqlValue[])[],
): Promise<readonly QueryResult[]> {
  const results: QueryResult[] = [];
  for (const params of paramSets) results.push(await transaction.query(text, params));
  return results;
}
