/** What follows a feed, or waits for an event of it, until the feed stops. */
export class Ongoing {
  readonly #ends = new Set<() => void>();
  readonly #inFlight = new Set<Promise<unknown>>();

  /**
   * Adds one.
   *
   * @param end lets it end
   * @returns what takes it away again
   */
  add(end: () => void): () => void {
    this.#ends.add(end);
    return () => void this.#ends.delete(end);
  }

  /** What one of them is at; it is waited for. */
  track<T>(work: Promise<T>): Promise<T> {
    const end = (): void => void this.#inFlight.delete(work);
    this.#inFlight.add(work);
    work.then(end, end);
    return work;
  }

  /** Lets all end, and waits for what they are at. */
  async stop(): Promise<void> {
    for (const end of this.#ends) end();
    await Promise.allSettled(this.#inFlight);
  }
}
