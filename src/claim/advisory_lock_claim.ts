import type { AdvisoryLockStatements, LockedRow, LockedRowAt } from "../driver/dialect.ts";
import type { LockHolder } from "../driver/driver.ts";
import type { Statement } from "../driver/statement.ts";
import { run } from "../driver/steps.ts";
import { LeaseLostError } from "../errors.ts";
import type { HeldTransaction, OpenTransaction } from "../held_transaction.ts";
import type { LockSession } from "../lock_session.ts";
import type { Pool } from "../pool.ts";
import type { Settlement } from "./claim_form.ts";
import type { DelayWarning } from "./delay_warning.ts";
import { runBurial } from "./run_burial.ts";
import { Savepoint } from "./savepoint.ts";
import { SessionClaim } from "./session_claim.ts";

/** What an advisory lock claim works with. */
export interface AdvisoryLockClaimOptions {
  readonly queue: string;
  readonly pool: Pool;
  readonly statements: AdvisoryLockStatements;
  /** What statements take for the present. */
  readonly now: () => number;
  /** The key of the row's lock. */
  readonly key: string;
  /** Gives back the service's own lock of the key. */
  readonly unlock: (locks: LockSession, key: string) => Promise<void>;
  readonly delayWarning: DelayWarning;
  /** Called when the lock has been given back. */
  readonly onEnd: () => void;
}

/** A row whose key's lock is held by a session. */
export class AdvisoryLockClaim extends SessionClaim {
  readonly #options: AdvisoryLockClaimOptions;
  readonly #locks: LockSession;
  readonly #holder: LockHolder;
  /** What the handler writes, in the transaction of the session that holds the lock. */
  #work: Promise<Savepoint> | undefined;
  /** The handler's transaction, where that session has none. */
  #own: Promise<HeldTransaction> | undefined;

  constructor(
    options: AdvisoryLockClaimOptions,
    row: LockedRow,
    locks: LockSession,
    holder: LockHolder,
  ) {
    super(options.queue, row, locks.lost);
    this.#options = options;
    this.#locks = locks;
    this.#holder = holder;
  }

  override async transaction(): Promise<OpenTransaction> {
    const { transaction } = this.#locks;
    if (transaction === undefined) return await (this.#own ??= this.#options.pool.hold());
    await (this.#work ??= Savepoint.set(transaction, "holdfast"));
    return transaction;
  }

  /** Its session has ended: the lock is taken again, unless somebody else has it by now. */
  protected override async takeBack(delay: number, error: string): Promise<void> {
    const { key, pool, statements } = this.#options;
    const write = statements.delay ?? statements.free;
    if (write === undefined) return;
    const locks = await pool.holdLocks();
    try {
      const holder = await locks.tryLock(key);
      if (holder === undefined) return;
      await locks.finish(() => run(write, { ...this.#row, holder, delay, error }));
    } finally {
      await locks.release();
    }
  }

  protected override async carryOut(settlement: Settlement): Promise<void> {
    try {
      await this.#endWork(settlement);
      await this.#settle(settlement);
    } finally {
      await this.endSession();
    }
  }

  /** What the handler has written is kept only if its message is done. */
  async #endWork(settlement: Settlement): Promise<void> {
    const [work, own] = [await this.#work, await this.#own];
    if (settlement.kind !== "remove" || !settlement.acked) {
      await work?.undo();
      await own?.rollback();
      this.#own = undefined;
    } else await work?.keep();
  }

  async #settle(settlement: Settlement): Promise<void> {
    const { statements, delayWarning } = this.#options;
    const { remove, drop = remove, free, delay, bury, giveBack } = statements;
    switch (settlement.kind) {
      case "remove":
        return await this.#remove(settlement.acked ? remove : drop, {
          ...this.#row,
          error: settlement.error,
        });
      case "bury": {
        const { error, newId } = settlement;
        const moved = await this.#locks.finish(() =>
          runBurial(bury!, { ...this.#row, error, newId })
        );
        return moved ? undefined : this.#notOurs();
      }
      case "interrupt":
        return;
      case "release":
        return giveBack === undefined ? undefined : await this.#write(giveBack, this.#row);
      case "delay":
        if (delay !== undefined) {
          const { error, delay: length } = settlement;
          return await this.#write(delay, { ...this.#row, delay: length, error });
        }
        delayWarning.tell();
    }
    const { error } = settlement;
    if (free !== undefined && error !== undefined) await this.#write(free, { ...this.#row, error });
  }

  async #remove<Values>(remove: Statement<Values>, values: Values): Promise<void> {
    const own = await this.#own;
    if (own === undefined) return await this.#write(remove, values);
    const { rows, changes } = await own.run(remove, values);
    if (rows.length + changes !== 1) this.#notOurs();
    await own.commit();
    this.#own = undefined;
  }

  protected override async giveBack(): Promise<void> {
    const { giveBack } = this.#options.statements;
    try {
      if (giveBack !== undefined) await this.#write(giveBack, this.#row);
    } finally {
      await this.endSession();
    }
  }

  protected override async endSession(): Promise<void> {
    try {
      await (await this.#own?.catch(() => undefined))?.rollback();
      await this.#options.unlock(this.#locks, this.#options.key);
      await this.#locks.release();
    } finally {
      this.#options.onEnd();
    }
  }

  get #row(): LockedRowAt {
    return { id: this.id, attempt: this.attempt, holder: this.#holder, now: this.#options.now() };
  }

  async #write<Values>(write: Statement<Values>, values: Values): Promise<void> {
    const { rows, changes } = await this.#locks.finish(() => run(write, values));
    if (rows.length + changes !== 1) this.#notOurs();
  }

  #notOurs(): never {
    throw new LeaseLostError(
      `Cannot settle message ${this.id} of queue "${this.queue}": its row is gone, or its lock is ` +
        `no longer held by this session; nothing was changed`,
    );
  }
}
