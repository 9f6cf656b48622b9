import type { AdvisoryLockStatements, Candidate } from "../driver/dialect.ts";
import type { SqlRow } from "../driver/driver.ts";
import type { Pool } from "../pool.ts";
import { LOWEST_PRIORITY, readPriority } from "./priority.ts";

/** Where a search goes on. */
interface Position {
  readonly priority: bigint;
  /** Which part of the plan is asked. */
  readonly part: number;
  /** The last candidate of the page before; `undefined` at the head of the part. */
  readonly after: Candidate | undefined;
}

/** Reads candidates page by page, in claim order. */
export class CandidateSearch {
  readonly #pool: Pool;
  readonly #statements: AdvisoryLockStatements;
  readonly #now: () => number;
  #position: Position | "head" | "end" = "head";

  constructor(pool: Pool, statements: AdvisoryLockStatements, now: () => number) {
    this.#pool = pool;
    this.#statements = statements;
    this.#now = now;
  }

  /** Whether every candidate is still to come. */
  get isAtHead(): boolean {
    return this.#position === "head";
  }

  /** Goes on from the head. */
  rewind(): void {
    this.#position = "head";
  }

  /** The next page; `undefined` at the end, after which it is at the head again. */
  async next(limit: number): Promise<readonly Candidate[] | undefined> {
    if (this.#position === "head") this.#position = await this.#enter(LOWEST_PRIORITY);
    while (this.#position !== "end") {
      const page = await this.#read(this.#position, limit);
      this.#position = page.length < limit
        ? await this.#following(this.#position)
        : { ...this.#position, after: page.at(-1) };
      if (page.length > 0) return page;
    }
    this.rewind();
  }

  async #read(
    { priority, part, after }: Position,
    limit: number,
  ): Promise<readonly Candidate[]> {
    const { first, next } = this.#statements.candidates.each[part]!;
    const values = { now: this.#now(), limit, priority };
    const rows = after === undefined
      ? await this.#pool.query(first, values)
      : await this.#pool.query(next, { ...values, after });
    return rows.map((row: SqlRow) => this.#statements.readCandidate(row));
  }

  async #following({ priority, part }: Position): Promise<Position | "end"> {
    const { each, nextPriority } = this.#statements.candidates;
    if (part + 1 < each.length) return { priority, part: part + 1, after: undefined };
    return nextPriority === undefined ? "end" : await this.#enter(priority + 1n);
  }

  /** To the smallest priority that is not below this one. */
  async #enter(atLeast: bigint): Promise<Position | "end"> {
    const { nextPriority } = this.#statements.candidates;
    if (nextPriority === undefined) return { priority: 0n, part: 0, after: undefined };
    const [found] = await this.#pool.query(nextPriority, { atLeast });
    const priority = readPriority(found);
    return priority === undefined ? "end" : { priority, part: 0, after: undefined };
  }
}
