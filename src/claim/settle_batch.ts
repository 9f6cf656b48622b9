import type { GuardedStatement, LeaseToken } from "../driver/dialect.ts";
import type { Pool, Transaction } from "../pool.ts";

/** One guarded write that waits for its turn. */
interface Write {
  readonly statement: GuardedStatement<never>;
  readonly values: LeaseToken;
  readonly resolve: (changed: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Writes settles that arrive together in one transaction: while one is on its way the next ones
 * gather. Each is guarded by its own token, and told whether its row was changed.
 */
export class SettleBatch {
  readonly #pool: Pool;
  #waiting: Write[] = [];
  #writing = false;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Resolves to whether the row was still the token's, and so was changed. */
  write<Extra>(statement: GuardedStatement<Extra>, values: LeaseToken & Extra): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({
        statement: statement as GuardedStatement<never>,
        values,
        resolve,
        reject,
      });
      if (!this.#writing) void this.#writeAll();
    });
  }

  async #writeAll(): Promise<void> {
    this.#writing = true;
    while (this.#waiting.length > 0) {
      const writes = this.#waiting;
      this.#waiting = [];
      await this.#writeTogether(writes);
    }
    this.#writing = false;
  }

  async #writeTogether(writes: readonly Write[]): Promise<void> {
    try {
      const changed = writes.length === 1
        ? await this.#writeOne(writes[0]!)
        : await this.#pool.transaction((transaction) => writeEach(transaction, writes));
      for (const write of writes) write.resolve(changed.has(write));
    } catch (error) {
      for (const write of writes) write.reject(error);
    }
  }

  async #writeOne(write: Write): Promise<ReadonlySet<Write>> {
    const rows = await this.#pool.query(write.statement, write.values as never);
    return new Set(rows.length > 0 ? [write] : []);
  }
}

async function writeEach(
  transaction: Transaction,
  writes: readonly Write[],
): Promise<ReadonlySet<Write>> {
  const changed = new Set<Write>();
  for (const [statement, alike] of Map.groupBy(writes, ({ statement }) => statement)) {
    const results = await transaction.queryEach(
      statement,
      alike.map(({ values }) => values as never),
    );
    alike.forEach((write, index) => {
      if (results[index]!.length > 0) changed.add(write);
    });
  }
  return changed;
}
