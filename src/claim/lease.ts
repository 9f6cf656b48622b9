import { now } from "../clock.ts";
import type {
  ClaimAtOnce,
  FindThenTake,
  LeaseStatements,
  LeaseToken,
  MessageId,
} from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import { query, type Steps } from "../driver/steps.ts";
import type { Pool } from "../pool.ts";
import type { Runtime } from "../runtime.ts";
import type { ClaimForm } from "./claim_form.ts";
import { DatabaseClock } from "./database_clock.ts";
import { LeaseClaim, type LeaseEnding, type LeaseWriter } from "./lease_claim.ts";
import { LeaseKeeper } from "./lease_keeper.ts";
import { SettleBatch } from "./settle_batch.ts";

/** What the lease form works with. */
export interface LeaseFormOptions {
  readonly queue: string;
  readonly pool: Pool;
  readonly statements: LeaseStatements;
  readonly leaseSeconds: number;
  readonly countsAttempts: boolean;
  readonly runtime: Runtime;
}

/**
 * Holds rows by an expiry written in them. A claim commits before the handler runs, so a row comes
 * back when its lease ends, whatever became of its holder; every later write is guarded by the
 * token that the claim wrote.
 */
export class LeaseForm implements ClaimForm, LeaseWriter {
  readonly #options: LeaseFormOptions;
  readonly #clock = new DatabaseClock();
  readonly #keeper: LeaseKeeper;
  readonly #settles: SettleBatch;

  constructor(options: LeaseFormOptions) {
    this.#options = options;
    this.#keeper = new LeaseKeeper({ ...options, clock: this.#clock });
    this.#settles = new SettleBatch(options.pool, options.statements);
  }

  get queue(): string {
    return this.#options.queue;
  }

  /** The present, by the clock that decides what is due. */
  get now(): number {
    return this.#clock.now;
  }

  get countsAttempts(): boolean {
    return this.#options.countsAttempts;
  }

  async claim(limit: number): Promise<readonly LeaseClaim[]> {
    const { statements: { claim, read } } = this.#options;
    const rows = claim.kind === "at once"
      ? await this.#claimAtOnce(claim, limit)
      : await this.#findThenTake(claim, limit);
    const claims = rows.map(read).map((row) => {
      this.#clock.observe(row.now);
      return new LeaseClaim(row, this);
    });
    for (const claim of claims) this.#keeper.keep(claim);
    return claims;
  }

  write(token: LeaseToken, ending: LeaseEnding): Promise<boolean> {
    const { statements } = this.#options;
    const values = { ...token, now: this.now };
    switch (ending.kind) {
      case "remove":
        return this.#settles.write(statements.remove, values);
      case "free":
      case "interrupt":
        return this.#settles.write(statements.free, values);
      case "delay":
        return this.#settles.write(statements.delay, { ...values, delay: ending.delay });
      case "release":
        return this.#settles.write(statements.release, values);
    }
  }

  async isGone(id: MessageId): Promise<boolean> {
    const { pool, statements } = this.#options;
    return (await pool.query(statements.look, { id })).length === 0;
  }

  forget(claim: LeaseClaim): void {
    this.#keeper.forget(claim);
  }

  close(): Promise<void> {
    this.#keeper.close();
    return Promise.resolve();
  }

  #claimAtOnce({ claim }: ClaimAtOnce, limit: number): Promise<readonly SqlRow[]> {
    const { pool, leaseSeconds } = this.#options;
    return pool.query(claim, { now: now(), leaseSeconds, limit });
  }

  #findThenTake(plan: FindThenTake, limit: number): Promise<readonly SqlRow[]> {
    return this.#options.pool.transaction(() => this.#findAndTake(plan, limit));
  }

  *#findAndTake(plan: FindThenTake, limit: number): Steps<readonly SqlRow[]> {
    const ids = yield* this.#find(plan, limit);
    return ids.length === 0 ? [] : yield* this.#take(plan, ids);
  }

  /** Asks the parts of the search in turn, until there are enough. */
  *#find({ find }: FindThenTake, limit: number): Steps<readonly MessageId[]> {
    const ids: MessageId[] = [];
    for (const part of find) {
      const rows = yield* query(part, { now: now(), limit: limit - ids.length });
      ids.push(...rows.map((row) => this.#options.statements.readId(row)));
      if (ids.length === limit) break;
    }
    return ids;
  }

  /** The rows in the order in which they were found, in which the database need not return them. */
  *#take({ take, fetch }: FindThenTake, ids: readonly MessageId[]): Steps<readonly SqlRow[]> {
    const { statements: { readId }, leaseSeconds } = this.#options;
    const taken = yield* query(take, { now: now(), leaseSeconds, ids });
    const rows = fetch === undefined ? taken : yield* query(fetch, { ids });
    const byId = new Map(rows.map((row) => [readId(row), row]));
    return ids.map((id) => byId.get(id)).filter((row) => row !== undefined);
  }
}
