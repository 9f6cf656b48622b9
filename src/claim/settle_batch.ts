import type { GuardedWrite, LeaseStatements, LeaseToken } from "../driver/dialect.ts";
import type { Pool } from "../pool.ts";
import { type Guarded, guarded, writeGuarded } from "./guarded_writes.ts";

/** One settle that waits for its turn. */
interface Waiting extends Guarded {
  readonly resolve: (changed: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Writes settles that arrive together in one transaction: while one is on its way the next ones
 * gather. Each is guarded by its own token, and told whether its row was changed.
 */
export class SettleBatch {
  readonly #pool: Pool;
  readonly #statements: LeaseStatements;
  #waiting: Waiting[] = [];
  #writing = false;

  constructor(pool: Pool, statements: LeaseStatements) {
    this.#pool = pool;
    this.#statements = statements;
  }

  /** Resolves to whether the row was still the token's, and so was changed. */
  write<Extra>(write: GuardedWrite<Extra>, values: LeaseToken & Extra): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...guarded(write, values), resolve, reject });
      if (!this.#writing) void this.#writeAll();
    });
  }

  async #writeAll(): Promise<void> {
    this.#writing = true;
    while (this.#waiting.length > 0) {
      const waiting = this.#waiting;
      this.#waiting = [];
      await this.#writeTogether(waiting);
    }
    this.#writing = false;
  }

  async #writeTogether(waiting: readonly Waiting[]): Promise<void> {
    try {
      const written = await writeGuarded(this.#pool, this.#statements, waiting);
      for (const [each, result] of written) {
        if ("error" in result) each.reject(result.error);
        else each.resolve(result.changed);
      }
    } catch (error) {
      for (const each of waiting) each.reject(error);
    }
  }
}
