import { now } from "../clock.ts";
import type { AdvisoryLockStatements, LockedRow, LockedRowAt } from "../driver/dialect.ts";
import type { LockHolder } from "../driver/driver.ts";
import type { Statement } from "../driver/statement.ts";
import { run } from "../driver/steps.ts";
import { LeaseLostError } from "../errors.ts";
import type { LockSession } from "../pool.ts";
import type { Settlement } from "./claim_form.ts";
import type { DelayWarning } from "./delay_warning.ts";
import { SessionClaim } from "./session_claim.ts";

/** What an advisory lock claim works with. */
export interface AdvisoryLockClaimOptions {
  readonly queue: string;
  readonly statements: AdvisoryLockStatements;
  readonly delayWarning: DelayWarning;
  /** Called when the lock has been given back. */
  readonly onEnd: () => void;
}

/** A row whose key's lock is held by a session. */
export class AdvisoryLockClaim extends SessionClaim {
  readonly #options: AdvisoryLockClaimOptions;
  readonly #locks: LockSession;
  readonly #holder: LockHolder;

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

  protected override async carryOut(settlement: Settlement): Promise<void> {
    const { statements: { remove, delay, bury }, delayWarning } = this.#options;
    try {
      switch (settlement.kind) {
        case "remove":
          await this.#write(remove, this.#row);
          break;
        case "bury":
          await this.#write(bury!, { ...this.#row, group: settlement.group });
          break;
        case "delay":
          if (delay === undefined) delayWarning.tell();
          else await this.#write(delay, { ...this.#row, delay: settlement.delay });
          break;
      }
    } finally {
      await this.endSession();
    }
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
      await this.#locks.release();
    } finally {
      this.#options.onEnd();
    }
  }

  get #row(): LockedRowAt {
    return { id: this.id, attempt: this.attempt, holder: this.#holder, now: now() };
  }

  async #write<Values>(write: Statement<Values>, values: Values): Promise<void> {
    const { rows, changes } = await this.#locks.finish(() => run(write, values));
    if (rows.length + changes === 1) return;
    throw new LeaseLostError(
      `Cannot settle message ${this.id} of queue "${this.queue}": its row is gone, or its lock is ` +
        `no longer held by this session; nothing was changed`,
    );
  }
}
