import type { DeliveryRecord, Seam } from "../src/runtime.ts";
import type { AnySubscription } from "../src/subscription.ts";

/** What a hold needs of its app. */
export interface SeamHoldOptions {
  /** Where deliveries are held. */
  readonly seam: Seam;
  /** Whose deliveries; of all subscriptions if not given. */
  readonly subscription: AnySubscription | undefined;
  /** Lets time pass until the condition holds. */
  readonly waitFor: (condition: () => boolean) => Promise<void>;
  /** Resolves when the app has done all it can do without time passing. */
  readonly quiet: () => Promise<void>;
  /** Told when nothing is held any more. */
  readonly onEnd: (hold: SeamHold) => void;
}

/**
 * Holds deliveries at a seam, as a process that stands still there would, though leases are renewed.
 * Time can pass meanwhile. Made by `TestApp.holdAt`.
 */
export class SeamHold implements Disposable {
  readonly #options: SeamHoldOptions;
  readonly #held = new Map<DeliveryRecord, () => void>();
  #isOpen = true;

  /** Holds from now on. */
  constructor(options: SeamHoldOptions) {
    this.#options = options;
  }

  /** The deliveries that are held now, in the order in which they came. */
  get deliveries(): readonly DeliveryRecord[] {
    return [...this.#held.keys()];
  }

  /**
   * Lets time pass until a delivery is held, and tells which came first.
   *
   * @throws {AssertionError} if none comes, as `TestApp.waitFor`
   */
  async reached(): Promise<DeliveryRecord> {
    await this.#options.waitFor(() => this.#held.size > 0);
    return this.deliveries[0]!;
  }

  /** Lets deliveries go on, and holds no more. Resolves when the app has done what it can then do. */
  async release(): Promise<void> {
    this[Symbol.dispose]();
    await this.#options.quiet();
  }

  /** Lets deliveries go on, and holds no more. */
  [Symbol.dispose](): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#options.onEnd(this);
    for (const goOn of this.#held.values()) goOn();
    this.#held.clear();
  }

  /** Holds a delivery that is at a seam, if it is one of those to be held. */
  take(seam: Seam, delivery: DeliveryRecord): Promise<void> | undefined {
    const { seam: own, subscription = delivery.subscription } = this.#options;
    if (seam !== own || delivery.subscription !== subscription) return undefined;
    return new Promise((resolve) => this.#held.set(delivery, resolve));
  }
}
