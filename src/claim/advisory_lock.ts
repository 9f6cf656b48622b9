import type { AdvisoryLockStatements, Candidate } from "../driver/dialect.ts";
import type { LockHolder, SqlRow } from "../driver/driver.ts";
import { run, type Steps } from "../driver/steps.ts";
import type { LockSession } from "../lock_session.ts";
import type { Pool } from "../pool.ts";
import { AdvisoryLockClaim } from "./advisory_lock_claim.ts";
import { CandidateSearch } from "./candidate_search.ts";
import type { ClaimForm } from "./claim_form.ts";
import { claimOneByOne } from "./claim_one_by_one.ts";
import { DelayWarning } from "./delay_warning.ts";
import { OwnLock } from "./own_lock.ts";

/** What the advisory lock form works with. */
export interface AdvisoryLockFormOptions {
  readonly queue: string;
  readonly pool: Pool;
  readonly statements: AdvisoryLockStatements;
  /** What statements take for the present. */
  readonly now: () => number;
  /** A statement that ends the connection on which it runs. */
  readonly endConnection: string | undefined;
}

/**
 * Holds each row by a lock on its key, which belongs to a session of its own: rows of one key are
 * handled one at a time, and when the process or the connection dies the database gives the lock
 * back.
 */
export class AdvisoryLockForm implements ClaimForm {
  readonly keepsOthersBack = true;
  readonly #options: AdvisoryLockFormOptions;
  readonly #search: CandidateSearch;
  readonly #delayWarning: DelayWarning;
  readonly #ownLock: OwnLock;
  /** Keys that this form holds itself. */
  readonly #held = new Set<string>();
  #resumes = false;

  constructor(options: AdvisoryLockFormOptions) {
    this.#options = options;
    this.#search = new CandidateSearch(options.pool, options.statements, options.now);
    this.#delayWarning = new DelayWarning(options.queue);
    this.#ownLock = new OwnLock(options.statements.ownLock, options.endConnection);
  }

  async claim(limit: number): Promise<readonly AdvisoryLockClaim[]> {
    const candidates = this.#candidates(limit);
    const refused = new Set<string>();
    const claims = await claimOneByOne(limit, () => this.#claimNext(candidates, refused));
    await candidates.return(undefined);
    return claims;
  }

  /** Each row has a key, and so a session, of its own. */
  claimBatch(limit: number): Promise<readonly AdvisoryLockClaim[]> {
    return this.claim(limit);
  }

  /** Claims end with their sessions: nothing keeps them alive. */
  close(): Promise<void> {
    return Promise.resolve();
  }

  /**
   * Candidates in claim order. Where the keys of all that were read are locked, the next claim goes
   * on after them, so that the rows behind do not wait for ever.
   */
  async *#candidates(limit: number): AsyncGenerator<Candidate, undefined> {
    if (!this.#resumes) this.#search.rewind();
    let mayWrap = !this.#search.isAtHead;
    this.#resumes = false;
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      const page = await this.#search.next(Math.max(SMALLEST_PAGE, 4 * limit));
      if (page !== undefined) yield* page;
      else if (mayWrap) mayWrap = false;
      else return;
    }
    this.#resumes = true;
  }

  /** @param refused keys whose lock somebody else was found to hold */
  async #claimNext(
    candidates: AsyncGenerator<Candidate, undefined>,
    refused: Set<string>,
  ): Promise<AdvisoryLockClaim | undefined> {
    let locks: LockSession | undefined;
    try {
      for (let next = await candidates.next(); !next.done; next = await candidates.next()) {
        const candidate = next.value;
        if (candidate.held || refused.has(candidate.key) || this.#held.has(candidate.key)) continue;
        locks ??= await this.#options.pool.holdLocks();
        const holder = await locks.tryLock(candidate.key);
        if (holder === undefined) {
          refused.add(candidate.key);
          continue;
        }
        if (!await this.#ownLock.take(locks, candidate.key)) {
          refused.add(candidate.key);
        } else {
          const row = await this.#take(locks, holder, candidate);
          if (row !== undefined) {
            const claim = this.#hold(locks, holder, candidate, row);
            locks = undefined;
            return claim;
          }
          await this.#ownLock.giveBack(locks, candidate.key);
        }
        await locks.release();
        locks = undefined;
      }
    } finally {
      await locks?.release();
    }
  }

  /** The row may have been claimed and settled, or changed, since it became a candidate. */
  #take(
    locks: LockSession,
    holder: LockHolder,
    { id, key }: Candidate,
  ): Promise<SqlRow | undefined> {
    const values = { id, key, holder, attempt: undefined, now: this.#options.now() };
    const { take, fetch } = this.#options.statements;
    return locks.transact(function* (): Steps<SqlRow | undefined> {
      let row: SqlRow | undefined;
      for (const statement of take) {
        const { rows, changes } = yield* run(statement, values);
        [row] = rows;
        if (row === undefined && changes === 0) return undefined;
      }
      if (fetch === undefined || row === undefined) return row;
      const { rows: [found] } = yield* run(fetch.statement, values);
      // The id and the attempt are those of the claim.
      return found === undefined
        ? row
        : { ...fetch.alias(found), id: row.id!, attempt: row.attempt! };
    });
  }

  #hold(
    locks: LockSession,
    holder: LockHolder,
    { key }: Candidate,
    row: SqlRow,
  ): AdvisoryLockClaim {
    this.#held.add(key);
    const onEnd = (): void => void this.#held.delete(key);
    const options = {
      ...this.#options,
      key,
      delayWarning: this.#delayWarning,
      onEnd,
      unlock: (locks: LockSession, key: string) => this.#ownLock.giveBack(locks, key),
    };
    return new AdvisoryLockClaim(options, this.#options.statements.read(row), locks, holder);
  }
}

const SMALLEST_PAGE = 50;
const MOST_PAGES = 20;
