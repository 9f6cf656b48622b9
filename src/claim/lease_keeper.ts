import { after, type Timer } from "../clock.ts";
import { expiryOf, type LeaseStatements } from "../driver/dialect.ts";
import { logOf } from "../log.ts";
import type { Pool } from "../pool.ts";
import type { Runtime } from "../runtime.ts";
import type { DatabaseClock } from "./database_clock.ts";
import { guarded, writeGuarded } from "./guarded_writes.ts";
import type { LeaseClaim } from "./lease_claim.ts";

/** What a keeper works with. */
export interface LeaseKeeperOptions {
  readonly queue: string;
  readonly pool: Pool;
  readonly statements: LeaseStatements;
  readonly leaseSeconds: number;
  /** Whether the table counts attempts, and a token so tells its holder from any later one. */
  readonly countsAttempts: boolean;
  readonly clock: DatabaseClock;
  readonly runtime: Runtime;
}

/**
 * Renews all leases of a subscription together, every half lease, for as long as any is held. A
 * lease that could not be renewed before it ended is lost, and so is one whose row another claim
 * has taken.
 */
export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions;
  readonly #held = new Set<LeaseClaim>();
  #timer: Timer | undefined;
  #ticking = false;
  #failing = false;
  #closed = false;

  constructor(options: LeaseKeeperOptions) {
    this.#options = options;
  }

  /** Renews this claim's lease from now on. */
  keep(claim: LeaseClaim): void {
    this.#held.add(claim);
    if (this.#timer === undefined && !this.#ticking) this.#arm(this.#halfLease);
  }

  /** Renews it no more. */
  forget(claim: LeaseClaim): void {
    this.#held.delete(claim);
    if (this.#held.size === 0) this.#disarm();
  }

  /** Renews all leases now; one that cannot be renewed is tried again as usual. */
  async renew(): Promise<void> {
    if (!this.#ticking) await this.#renew();
  }

  /** Renews nothing any more; the leases end by themselves. */
  close(): void {
    this.#closed = true;
    this.#held.clear();
    this.#disarm();
  }

  get #now(): number {
    return this.#options.clock.now;
  }

  get #halfLease(): number {
    return this.#options.leaseSeconds * 500;
  }

  #arm(ms: number): void {
    this.#timer = after(ms, () => void this.#tick());
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  async #tick(): Promise<void> {
    this.#ticking = true;
    const renewed = await this.#renew();
    this.#ticking = false;
    this.#disarm();
    if (!this.#closed && this.#held.size > 0) {
      this.#arm(renewed ? this.#untilHalfLease() : this.#untilNextTry());
    }
  }

  /** Whether the database answered. */
  async #renew(): Promise<boolean> {
    this.#loseWhatCannotBeTold();
    const claims = [...this.#held].filter((claim) => claim.held);
    if (claims.length === 0) return true;
    try {
      if (this.#options.runtime.renewalsPaused) throw new Error("Renewals are paused by the test");
      return await this.#write(claims);
    } catch (error) {
      this.#unanswered(error, claims);
      return false;
    }
  }

  /**
   * An ended lease may be renewed as long as nobody has claimed its row. Without attempts that
   * cannot be known for sure: a claim made in this very second has written the same expiry.
   */
  #loseWhatCannotBeTold(): void {
    if (this.#options.countsAttempts) return;
    for (const claim of this.#held) {
      if (claim.expiry <= this.#now) this.#lose(claim, "its lease ended before it was renewed");
    }
  }

  /** Whether all could be written. */
  async #write(claims: readonly LeaseClaim[]): Promise<boolean> {
    const { pool, statements, leaseSeconds, queue, runtime } = this.#options;
    const next = expiryOf({ now: this.#now, leaseSeconds });
    const writes = claims.map((claim) => {
      const until = claim.renewing(next);
      return { ...guarded(statements.renew, { ...claim.token, until }), claim, until };
    });
    const written = await writeGuarded(pool, statements, writes);
    const renewed: LeaseClaim[] = [];
    const failed: LeaseClaim[] = [];
    let reason: unknown;
    for (const [{ claim, until }, result] of written) {
      if ("error" in result) {
        failed.push(claim);
        reason = result.error;
      } else if (result.changed) {
        claim.renewed(until);
        renewed.push(claim);
      } else this.#lose(claim, "another claim holds its row");
    }
    if (renewed.length > 0) {
      runtime.observe({ type: "renewed", queue, ids: renewed.map(({ id }) => id) });
    }
    if (failed.length > 0) this.#unanswered(reason, failed);
    else this.#answered();
    return failed.length === 0;
  }

  #answered(): void {
    if (this.#failing) LOG.info("Leases of {queue} are renewed again", this.#place);
    this.#failing = false;
  }

  #unanswered(error: unknown, claims: readonly LeaseClaim[]): void {
    if (!this.#failing) {
      LOG.warn("Leases of {queue} cannot be renewed: {error}", { ...this.#place, error });
    }
    this.#failing = true;
    for (const claim of claims) {
      if (claim.expiry <= this.#now) {
        this.#lose(claim, "its lease ended before it could be renewed", error);
      }
    }
  }

  #lose(claim: LeaseClaim, reason: string, cause?: unknown): void {
    if (!claim.held) return;
    const { queue, runtime } = this.#options;
    LOG.warn("Lease of message {id} of {queue} is lost: {reason}", {
      ...this.#place,
      id: claim.id,
      reason,
    });
    runtime.observe({ type: "lost", queue, id: claim.id });
    claim.lose(reason, cause);
  }

  /** When half a lease has passed, or less where a renewal in doubt was repeated late. */
  #untilHalfLease(): number {
    return Math.max(SHORTEST, Math.min(this.#halfLease, this.#untilFirstEnd - this.#halfLease));
  }

  /** Soon again, and at the latest when the first of the leases ends. */
  #untilNextTry(): number {
    return Math.max(SHORTEST, Math.min(this.#halfLease, LONGEST_RETRY, this.#untilFirstEnd));
  }

  get #untilFirstEnd(): number {
    const held = [...this.#held].filter((claim) => claim.held);
    return Math.min(...held.map(({ expiry }) => expiry)) - this.#now;
  }

  get #place(): { readonly queue: string } {
    return { queue: this.#options.queue };
  }
}

const LOG = logOf("lease");
const LONGEST_RETRY = 1_000;
/** No two renewals follow each other faster, whatever is at stake. */
const SHORTEST = 50;
