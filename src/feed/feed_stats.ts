/** What a feed has done since it was made, in this process. */
export interface FeedStats {
  /** Events written, and committed as far as is known. */
  readonly written: number;
  /** Polls carried out. */
  readonly polls: number;
  /** Events that a follower has got by broadcast. */
  readonly broadcast: number;
  /** Events written since a follower began that it has got by a poll, before any broadcast of them. */
  readonly recovered: number;
  /** Broadcasts of events that a follower had got already: by a poll, or twice. */
  readonly duplicated: number;
  /** Of those recovered, the ones whose broadcast has not come since. */
  readonly missed: number;
  /** Calls of `run` and `waitFor` that have ended because their time was over. */
  readonly timeouts: number;
}

/** Counts for {@link FeedStats}. */
export class FeedCounts {
  written = 0;
  polls = 0;
  broadcast = 0;
  recovered = 0;
  duplicated = 0;
  /** Broadcasts that came after a poll had found their event. */
  late = 0;
  timeouts = 0;

  /** The numbers as they stand. */
  get stats(): FeedStats {
    const { written, polls, broadcast, recovered, duplicated, late, timeouts } = this;
    const missed = recovered - late;
    return { written, polls, broadcast, recovered, duplicated, missed, timeouts };
  }
}
