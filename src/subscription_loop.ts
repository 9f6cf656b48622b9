import { AFTER_DISCONNECT, backoff } from "./backoff.ts";
import type { Claim, ClaimForm } from "./claim/claim_form.ts";
import { random } from "./clock.ts";
import type { States } from "./delivery_in_work.ts";
import { logOf } from "./log.ts";
import type { AnyQueue } from "./queue.ts";
import { runDelivery } from "./run_delivery.ts";
import type { DeliveryRecord, Runtime } from "./runtime.ts";
import type { AnySubscription } from "./subscription.ts";
import { Wake } from "./wake.ts";

/** What a loop works with. */
export interface SubscriptionLoopOptions {
  readonly subscription: AnySubscription;
  readonly form: ClaimForm;
  /** In milliseconds. */
  readonly pollInterval: number;
  readonly states: States;
  readonly runtime: Runtime;
}

/** How the deliveries of one queue ended while the app stopped. */
export interface QueueReport {
  /** The queue's name. */
  readonly queue: string;
  /** Deliveries that were settled after intake had stopped, without being aborted. */
  readonly finished: number;
  /** Rows that were claimed but not handed to a handler, and were given back. */
  readonly released: number;
  /** Deliveries whose signal was aborted. */
  readonly aborted: number;
}

/**
 * Claims rows for the free workers of one subscription, and hands them out: on and on while claims
 * come back full, else when woken or when the poll interval has passed.
 */
export class SubscriptionLoop {
  readonly #options: SubscriptionLoopOptions;
  readonly #inWork = new Map<Claim, Promise<void>>();
  readonly #wake = new Wake();
  readonly #workerFree = new Wake();
  #running: Promise<void> = Promise.resolve();
  #stopping = false;
  #failures = 0;
  #report = { finished: 0, released: 0, aborted: 0 };

  constructor(options: SubscriptionLoopOptions) {
    this.#options = options;
  }

  /** The queue whose messages it handles. */
  get queue(): AnyQueue {
    return this.#options.subscription.queue as AnyQueue;
  }

  /** How many handlers are at work. */
  get inWork(): number {
    return this.#inWork.size;
  }

  /** How deliveries have ended since intake stopped. */
  get report(): QueueReport {
    return { queue: this.#name, ...this.#report };
  }

  /** Begins to claim. `onCrash` is called if the loop ends by an error of its own. */
  start(onCrash: (error: unknown) => void): void {
    this.#running = this.#run().catch(onCrash);
  }

  /** Looks for messages at once. */
  wake(): void {
    this.#wake.call();
  }

  /** Claims no more. Resolves when no claim is under way and what no handler has seen is back. */
  async stopIntake(): Promise<void> {
    this.#stopping = true;
    this.#wake.call();
    this.#workerFree.call();
    await this.#running;
  }

  /** Resolves when no handler is at work. */
  async idle(): Promise<void> {
    while (this.#inWork.size > 0) await Promise.all(this.#inWork.values());
  }

  /** Aborts the signal of every handler at work. */
  abort(reason: Error): void {
    this.#report.aborted += this.#inWork.size;
    for (const claim of this.#inWork.keys()) claim.abort(reason);
  }

  /** Frees the rows of handlers that did not heed their signal. */
  async abandon(): Promise<void> {
    await Promise.all([...this.#inWork.keys()].map((claim) => this.#free(claim)));
  }

  /** Renews nothing any more. */
  close(): Promise<void> {
    return this.#options.form.close();
  }

  get #name(): string {
    return this.#options.subscription.queue.name;
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      const free = this.#options.subscription.options.workers - this.#inWork.size;
      if (free === 0) {
        await this.#untilWorkerFree();
        continue;
      }
      this.#wake.forget();
      if (this.#stopping) return;
      const claims = await this.#claim(free);
      for (const claim of claims) await this.#handOut(claim);
      if (claims.length < free && !this.#stopping) await this.#wake.sleep(this.#untilNextLook());
    }
  }

  async #untilWorkerFree(): Promise<void> {
    const { workers } = this.#options.subscription.options;
    this.#workerFree.forget();
    while (this.#inWork.size === workers && !this.#stopping) await this.#workerFree.called();
  }

  async #claim(limit: number): Promise<readonly Claim[]> {
    const { form, runtime } = this.#options;
    try {
      const claims = await form.claim(limit);
      this.#answered();
      if (claims.length > 0) {
        runtime.observe({
          type: "claimed",
          queue: this.#name,
          ids: claims.map(({ id }) => id),
        });
      }
      return claims;
    } catch (error) {
      this.#unanswered(error);
      return [];
    }
  }

  async #handOut(claim: Claim): Promise<void> {
    if (this.#stopping) return await this.#release(claim);
    const { subscription, states, runtime } = this.#options;
    const work = runDelivery(claim, subscription, states, runtime)
      .then((record) => this.#finish(claim, record));
    this.#inWork.set(claim, work);
  }

  #finish(claim: Claim, { outcome, error, settled }: DeliveryRecord): void {
    this.#inWork.delete(claim);
    if (this.#stopping && settled && !claim.signal.aborted) this.#report.finished++;
    this.#workerFree.call();
    const isBack = outcome?.kind === "retry" && error === undefined;
    if (isBack || this.#options.form.keepsOthersBack) this.#wake.call();
  }

  async #release(claim: Claim): Promise<void> {
    try {
      await claim.release();
      this.#report.released++;
      this.#options.runtime.observe({ type: "released", queue: this.#name, id: claim.id });
    } catch (error) {
      LOG.warn("Message {id} of {queue} was not released and comes back later: {error}", {
        queue: this.#name,
        id: claim.id,
        error,
      });
    }
  }

  async #free(claim: Claim): Promise<void> {
    try {
      if (claim.held) await claim.settle({ kind: "interrupt" });
    } catch (error) {
      LOG.warn("Message {id} of {queue} was not freed and comes back later: {error}", {
        queue: this.#name,
        id: claim.id,
        error,
      });
    }
  }

  #untilNextLook(): number {
    if (this.#failures > 0) return backoff(this.#failures, AFTER_DISCONNECT);
    return this.#options.pollInterval * (0.9 + 0.2 * random());
  }

  #answered(): void {
    if (this.#failures > 0) LOG.info("Queue {queue} claims again", { queue: this.#name });
    this.#failures = 0;
  }

  #unanswered(error: unknown): void {
    if (this.#failures++ > 0) return;
    LOG.error("Queue {queue} cannot claim, and tries again until it can: {error}", {
      queue: this.#name,
      error,
    });
  }
}

const LOG = logOf("claim");
