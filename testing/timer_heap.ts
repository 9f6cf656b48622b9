/** Something that waits for its time in a {@link TimerHeap}. */
export interface Queued {
  /** When its time comes. */
  due: number;
  /** Grows with every arming: orders what is due at the same instant. */
  sequence: number;
  /** Its place in the heap, or {@link NOT_QUEUED}. */
  index: number;
}

/** The `index` of what is in no heap. */
export const NOT_QUEUED: number = -1;

/** A binary heap in which each item knows its place, so that removing one is cheap too. */
export class TimerHeap<T extends Queued> {
  readonly #items: T[] = [];

  /** The item whose time comes first. */
  get first(): T | undefined {
    return this.#items[0];
  }

  /** All items, in order. */
  sorted(): T[] {
    return this.#items.toSorted((one, other) => isBefore(one, other) ? -1 : 1);
  }

  /** Takes an item in. */
  push(item: T): void {
    this.#items.push(item);
    this.#rise(item, this.#items.length - 1);
  }

  /** Takes an item out, which must be in this heap. */
  remove(item: T): void {
    const gap = item.index;
    const last = this.#items.pop()!;
    item.index = NOT_QUEUED;
    if (last === item) return;
    this.#rise(last, gap);
    this.#sink(last, last.index);
  }

  #rise(item: T, from: number): void {
    let index = from;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(item, this.#items[parent]!)) break;
      this.#put(this.#items[parent]!, index);
      index = parent;
    }
    this.#put(item, index);
  }

  #sink(item: T, from: number): void {
    let index = from;
    for (let child = 2 * index + 1; child < this.#items.length; child = 2 * index + 1) {
      const right = this.#items[child + 1];
      if (right !== undefined && isBefore(right, this.#items[child]!)) child++;
      if (!isBefore(this.#items[child]!, item)) break;
      this.#put(this.#items[child]!, index);
      index = child;
    }
    this.#put(item, index);
  }

  #put(item: T, index: number): void {
    this.#items[index] = item;
    item.index = index;
  }
}

function isBefore(one: Queued, other: Queued): boolean {
  return one.due === other.due ? one.sequence < other.sequence : one.due < other.due;
}
