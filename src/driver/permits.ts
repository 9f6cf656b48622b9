/**
 * As many may hold a permit as there are connections; the others wait here, in order, and not in
 * the client: what the client gets it can send at once, so that the time it takes tells something.
 */
export class Permits {
  readonly #count: number;
  readonly #waiting: PromiseWithResolvers<void>[] = [];
  readonly #allBack = Promise.withResolvers<void>();
  #free: number;
  #closed: Error | undefined;

  constructor(count: number) {
    this.#count = count;
    this.#free = count;
  }

  /** Waits for a permit. */
  take(): Promise<void> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve();
    }
    const turn = Promise.withResolvers<void>();
    this.#waiting.push(turn);
    return turn.promise;
  }

  /** Gives a permit back. */
  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next.resolve();
    this.#notice();
  }

  /** Refuses everybody who waits, and whoever comes. Resolves when all permits are back. */
  close(reason: Error): Promise<void> {
    this.#closed = reason;
    for (const turn of this.#waiting.splice(0)) turn.reject(reason);
    this.#notice();
    return this.#allBack.promise;
  }

  #notice(): void {
    if (this.#closed !== undefined && this.#free === this.#count) this.#allBack.resolve();
  }
}
