import { after } from "../clock.ts";
import type {
  ClaimAtOnce,
  ClaimedRow,
  FindThenTake,
  LeaseStatements,
  LeaseTimes,
  LeaseToken,
  MessageId,
} from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import { query, type Steps } from "../driver/steps.ts";
import { TimeoutError } from "../errors.ts";
import { type HeldTransaction, withEnd } from "../held_transaction.ts";
import type { Pool } from "../pool.ts";
import type { Runtime } from "../runtime.ts";
import type { ClaimForm, Settlement } from "./claim_form.ts";
import { DatabaseClock } from "./database_clock.ts";
import { DelayWarning } from "./delay_warning.ts";
import { Savepoint } from "./savepoint.ts";
import { LeaseClaim, type LeaseWriter } from "./lease_claim.ts";
import { LeaseKeeper } from "./lease_keeper.ts";
import { runBurial } from "./run_burial.ts";
import { search } from "./search.ts";
import { SettleBatch } from "./settle_batch.ts";

/** What the lease form works with. */
export interface LeaseFormOptions {
  readonly queue: string;
  readonly pool: Pool;
  readonly statements: LeaseStatements;
  /** What statements take for the present. */
  readonly now: () => number;
  readonly leaseSeconds: number;
  readonly countsAttempts: boolean;
  /** Whether a delay can be told from a lease. */
  readonly keepsDelays: boolean;
  readonly runtime: Runtime;
}

/**
 * Holds rows by an expiry written in them. A claim commits before the handler runs, so a row comes
 * back when its lease ends, whatever became of its holder; every later write is guarded by the
 * token that the claim wrote.
 */
export class LeaseForm implements ClaimForm, LeaseWriter {
  readonly keepsOthersBack = false;
  readonly #options: LeaseFormOptions;
  readonly #delayWarning: DelayWarning;
  readonly #clock: DatabaseClock;
  readonly #keeper: LeaseKeeper;
  readonly #settles: SettleBatch;
  readonly #closed = new AbortController();

  constructor(options: LeaseFormOptions) {
    this.#options = options;
    this.#clock = new DatabaseClock(options.now);
    this.#delayWarning = new DelayWarning(options.queue);
    this.#keeper = new LeaseKeeper({ ...options, clock: this.#clock });
    this.#settles = new SettleBatch(options.pool, options.statements);
    options.pool.expectLease(options.leaseSeconds * 1000);
  }

  get queue(): string {
    return this.#options.queue;
  }

  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** The present, by the clock that decides what is due. */
  get now(): number {
    return this.#clock.now;
  }

  get countsAttempts(): boolean {
    return this.#options.countsAttempts;
  }

  /** Their settles are written together anyway. */
  claimBatch(limit: number): Promise<readonly LeaseClaim[]> {
    return this.claim(limit);
  }

  async claim(limit: number): Promise<readonly LeaseClaim[]> {
    const rows = await this.#claimRows(limit);
    const claims: LeaseClaim[] = [];
    for (const row of rows.map(this.#options.statements.read)) {
      this.#clock.observe(row.now);
      claims.push(new LeaseClaim(await this.#contentOf(row), this));
    }
    for (const claim of claims) this.#keeper.keep(claim);
    return claims;
  }

  write(token: LeaseToken, ending: Settlement): Promise<boolean> {
    const { statements } = this.#options;
    const values = { ...token, now: this.now, error: "error" in ending ? ending.error : undefined };
    switch (ending.kind) {
      case "remove": {
        const { remove, drop = remove } = statements;
        return this.#settles.write(ending.acked ? remove : drop, values);
      }
      case "free":
      case "interrupt":
        return this.#settles.write(statements.free, values);
      case "bury": {
        const { newId } = ending;
        return this.#options.pool.transaction(() =>
          runBurial(statements.bury!, { ...values, newId })
        );
      }
      case "delay":
        if (!this.#options.keepsDelays) this.#delayWarning.tell();
        return this.#settles.write(statements.delay, { ...values, delay: ending.delay });
      case "release":
        return this.#settles.write(statements.release, values);
    }
  }

  /** Where all writers wait for one another, it must not keep leases from being renewed. */
  async begin(claim: LeaseClaim): Promise<HeldTransaction> {
    const { pool } = this.#options;
    if (!pool.hasOneWriter) return await marked(await pool.hold());
    await this.#keeper.renew();
    const transaction = await marked(await pool.hold());
    const { longestWrite } = pool;
    const timer = after(longestWrite, () => {
      claim.abort(
        new TimeoutError(
          `The transaction of message ${claim.id} of queue "${this.queue}" has been open for ` +
            `${longestWrite} ms, half the shortest lease, and keeps others from renewing theirs: ` +
            `write at the end of the handler, or give longer leases`,
        ),
      );
      transaction.rollback().catch(() => {});
    });
    return withEnd(transaction, () => timer.cancel());
  }

  async removeIn(transaction: HeldTransaction, token: LeaseToken): Promise<boolean> {
    const { remove } = this.#options.statements;
    // It is gone if the transaction was ended from inside: then what follows would stand alone.
    await new Savepoint(transaction, "holdfast").keep();
    const { rows, changes } = await transaction.run(remove.one, { ...token, now: this.now });
    return rows.length + changes > 0;
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
    this.#closed.abort();
    return Promise.resolve();
  }

  /** What a row holds, where the service has a statement of its own for it. */
  async #contentOf(row: ClaimedRow): Promise<ClaimedRow> {
    const { pool, statements: { fetch, read }, now } = this.#options;
    const values = { id: row.id, now: now() };
    const found = fetch === undefined ? [] : await pool.query(fetch.statement, values);
    if (found[0] === undefined) return row;
    const fetched = { ...fetch!.alias(found[0]), id: String(row.id) };
    return { ...row, content: read(fetched).content };
  }

  /** Under the guard of a FIFO queue, which is taken first, so that no two claims find one head. */
  async #claimRows(limit: number): Promise<readonly SqlRow[]> {
    const { pool, statements: { claim, guardKey } } = this.#options;
    if (guardKey !== undefined) {
      return await pool.transactionUnder(guardKey, () => this.#claim(claim, limit)) ?? [];
    }
    return claim.kind === "at once"
      ? await pool.query(claim.claim, this.#claimValues(limit))
      : await pool.transaction(() => this.#claim(claim, limit));
  }

  *#claim(plan: ClaimAtOnce | FindThenTake, limit: number): Steps<readonly SqlRow[]> {
    if (plan.kind === "at once") return yield* query(plan.claim, this.#claimValues(limit));
    const found = yield* search(plan.find, limit, this.#options.now);
    // A statement of the service's own may find a row twice.
    const ids = [...new Set(found.map((row) => this.#options.statements.readId(row)))];
    return ids.length === 0 ? [] : yield* this.#take(plan, ids);
  }

  #claimValues(limit: number): LeaseTimes & { readonly limit: number } {
    const { now, leaseSeconds } = this.#options;
    return { now: now(), leaseSeconds, limit };
  }

  /** The rows in the order in which they were found, in which the database need not return them. */
  *#take({ take, fetch }: FindThenTake, ids: readonly MessageId[]): Steps<readonly SqlRow[]> {
    const { statements: { readId }, leaseSeconds, now } = this.#options;
    const taken = yield* query(take, { now: now(), leaseSeconds, ids });
    const rows = fetch === undefined ? taken : yield* query(fetch, { ids });
    const byId = new Map(rows.map((row) => [readId(row), row]));
    return ids.map((id) => byId.get(id)).filter((row) => row !== undefined);
  }
}

/** What a handler has written can be told from what somebody else would write on its connection. */
async function marked(transaction: HeldTransaction): Promise<HeldTransaction> {
  try {
    await Savepoint.set(transaction, "holdfast");
    return transaction;
  } catch (error) {
    await transaction.rollback();
    throw error;
  }
}
