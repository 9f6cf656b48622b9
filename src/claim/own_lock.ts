import type { AdvisoryLockStatements } from "../driver/dialect.ts";
import type { Statement } from "../driver/statement.ts";
import { run } from "../driver/steps.ts";
import type { LockSession } from "../lock_session.ts";

/** A lock of the service's own, which its other code takes too; without one nothing is done. */
export class OwnLock {
  readonly #statements: AdvisoryLockStatements["ownLock"];
  readonly #endConnection: string | undefined;

  constructor(
    statements: AdvisoryLockStatements["ownLock"],
    endConnection: string | undefined,
  ) {
    this.#statements = statements;
    this.#endConnection = endConnection;
  }

  /** Takes it for the session, without waiting; whether it was free. */
  async take(locks: LockSession, key: string): Promise<boolean> {
    return this.#statements === undefined || await ask(locks, this.#statements.lock, key);
  }

  /** Gives it back. A session that may still hold it ends: nobody else could take the lock. */
  async giveBack(locks: LockSession, key: string): Promise<void> {
    if (this.#statements === undefined || locks.lost.aborted) return;
    try {
      if (await ask(locks, this.#statements.unlock, key)) return;
    } catch {
      // It is not known whether it was given back.
    }
    if (this.#endConnection === undefined) return;
    const end = { text: this.#endConnection, params: [] };
    await locks.transact(() => run(end, undefined)).catch(() => {});
  }
}

async function ask(
  locks: LockSession,
  statement: Statement<{ readonly key: string }>,
  key: string,
): Promise<boolean> {
  const { rows: [row] } = await locks.transact(() => run(statement, { key }));
  const [answer = null] = Object.values(row ?? {});
  return answer === "t" || answer === "true" || Number(answer) > 0;
}
