/** Remembers ids, the last ones only. */
export class RecentIds {
  readonly #ids = new Set<string>();
  readonly #most: number;

  /** @param most how many are remembered */
  constructor(most: number) {
    this.#most = most;
  }

  /** Whether the id is new; from now on it is not. */
  add(id: string): boolean {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    // A set is in the order in which it was filled.
    if (this.#ids.size > this.#most) this.#ids.delete(this.#ids.keys().next().value!);
    return true;
  }
}
