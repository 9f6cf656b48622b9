import { AFTER_DISCONNECT, backoff } from "./backoff.ts";
import type { Claim, ClaimForm } from "./claim/claim_form.ts";
import { random } from "./clock.ts";
import type { States } from "./delivery_in_work.ts";
import type { MessageId, NextDue } from "./driver/dialect.ts";
import type { DeliveriesContext } from "./decide_deliveries.ts";
import type { IdleLoop } from "./idle_sleep.ts";
import { logOf } from "./log.ts";
import type { AnyQueue } from "./queue.ts";
import type { Publisher } from "./publisher.ts";
import { runDeliveries } from "./run_deliveries.ts";
import type { DeliveryRecord, Runtime } from "./runtime.ts";
import type { AnySubscription } from "./subscription.ts";
import { Wake } from "./wake.ts";

/** What a loop works with. */
export interface SubscriptionLoopOptions {
  readonly subscription: AnySubscription;
  readonly form: ClaimForm;
  /** In milliseconds. */
  readonly pollInterval: number;
  /** When the next row is due; `undefined` where the service searches by a statement of its own. */
  readonly nextDue: () => Promise<NextDue | undefined>;
  readonly states: States;
  readonly runtime: Runtime;
  readonly publisher: Publisher;
  /** The database's name. */
  readonly database: string;
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
  readonly #context: DeliveriesContext;
  readonly #idle: IdleLoop;
  /** What each worker is at, with the claims that it has. */
  readonly #inWork = new Map<Promise<void>, readonly Claim[]>();
  /** The latest work of each partition key. */
  readonly #keys = new Map<string, Promise<void>>();
  /** Messages whose batch failed: they are handled one by one when they come back. */
  readonly #alone = new Set<MessageId>();
  readonly #wake = new Wake();
  readonly #workerFree = new Wake();
  #running: Promise<void> = Promise.resolve();
  #onCrash: (error: unknown) => void = () => {};
  #stopping = false;
  #failures = 0;
  #report = { finished: 0, released: 0, aborted: 0 };

  constructor(options: SubscriptionLoopOptions) {
    this.#options = options;
    const { pollInterval, nextDue } = options;
    this.#idle = { wake: this.#wake, pollInterval, phase: random(), nextDue };
    this.#context = { ...options, isAlone: ({ id }) => this.#alone.has(id) };
  }

  /** The queue whose messages it handles. */
  get queue(): AnyQueue {
    return this.#options.subscription.queue as AnyQueue;
  }

  /** How many handlers are at work. */
  get inWork(): number {
    return this.#claims.length;
  }

  /** When the next row is due; `undefined` where that is not known. */
  nextDue(): Promise<NextDue | undefined> {
    return this.#options.nextDue();
  }

  /** How deliveries have ended since intake stopped. */
  get report(): QueueReport {
    return { queue: this.#name, ...this.#report };
  }

  /** Begins to claim. `onCrash` is called if the loop ends by an error of its own. */
  start(onCrash: (error: unknown) => void): void {
    this.#onCrash = onCrash;
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
    while (this.#inWork.size > 0) await Promise.all(this.#inWork.keys());
  }

  /** Aborts the signal of every handler at work. */
  abort(reason: Error): void {
    this.#report.aborted += this.#claims.length;
    for (const claim of this.#claims) claim.abort(reason);
  }

  /** Frees the rows of handlers that did not heed their signal. */
  async abandon(): Promise<void> {
    await Promise.all(this.#claims.map((claim) => this.#free(claim)));
  }

  /** Renews nothing any more. */
  close(): Promise<void> {
    return this.#options.form.close();
  }

  get #claims(): readonly Claim[] {
    return [...this.#inWork.values()].flat();
  }

  get #name(): string {
    return this.#options.subscription.queue.name;
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      const { workers, batch } = this.#options.subscription.options;
      const free = workers - this.#inWork.size;
      if (free === 0) {
        await this.#untilWorkerFree();
        continue;
      }
      this.#wake.forget();
      if (this.#stopping) return;
      const wanted = batch ?? free;
      const claims = await this.#claim(wanted);
      if (batch === undefined) { for (const claim of claims) await this.#handOut([claim]); }
      else if (claims.length > 0) await this.#handOut(claims);
      if (claims.length < wanted && !this.#stopping) await this.#sleep();
    }
  }

  /** Until woken, or until it is time to look again. */
  async #sleep(): Promise<void> {
    const { idleSleep } = this.#options.runtime;
    if (this.#failures > 0) await this.#wake.sleep(backoff(this.#failures, AFTER_DISCONNECT));
    else if (idleSleep === undefined) await this.#wake.sleep(this.#interval());
    else await idleSleep.sleep(this.#idle);
  }

  async #untilWorkerFree(): Promise<void> {
    const { workers } = this.#options.subscription.options;
    this.#workerFree.forget();
    while (this.#inWork.size === workers && !this.#stopping) await this.#workerFree.called();
  }

  async #claim(limit: number): Promise<readonly Claim[]> {
    const { form, runtime } = this.#options;
    try {
      const { batch } = this.#context.subscription.options;
      const claims = await (batch === undefined ? form.claim(limit) : form.claimBatch(limit));
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

  async #handOut(claims: readonly Claim[]): Promise<void> {
    if (this.#stopping) return void await Promise.all(claims.map((claim) => this.#release(claim)));
    const work = this.#work(claims).catch(this.#onCrash).then(() => {
      this.#inWork.delete(work);
      this.#workerFree.call();
      if (this.#options.form.keepsOthersBack) this.#wake.call();
    });
    this.#inWork.set(work, claims);
  }

  /** Messages of a key wait for those of the key that were claimed before them. */
  async #work(claims: readonly Claim[]): Promise<void> {
    const keys = [...new Set(claims.flatMap(({ content: { key } }) => key ?? []))];
    const earlier = keys.flatMap((key) => this.#keys.get(key) ?? []);
    const turn = earlier.length === 0
      ? this.#runParts(claims)
      : Promise.all(earlier).then(() => this.#runUnlessStopping(claims));
    for (const key of keys) this.#keys.set(key, turn);
    await turn;
    for (const key of keys) if (this.#keys.get(key) === turn) this.#keys.delete(key);
  }

  async #runUnlessStopping(claims: readonly Claim[]): Promise<void> {
    if (!this.#stopping) return await this.#runParts(claims);
    await Promise.all(claims.map((claim) => this.#release(claim)));
  }

  /** Messages whose batch has failed before are handled by themselves, after the others. */
  async #runParts(claims: readonly Claim[]): Promise<void> {
    const alone = claims.length === 1 ? [] : claims.filter(({ id }) => this.#alone.has(id));
    const together = claims.filter((claim) => !alone.includes(claim));
    const parts = [together, ...alone.map((claim) => [claim])].filter(({ length }) => length > 0);
    const { records, failedTogether, fatal } = await runDeliveries(parts, this.#context);
    for (const [index, claim] of parts.flat().entries()) {
      const record = records[index]!;
      const isAlone = failedTogether.includes(claim) || alone.includes(claim) && isFailed(record);
      if (isAlone) this.#isolate(claim.id);
      else this.#alone.delete(claim.id);
      this.#count(claim, record);
    }
    if (fatal !== undefined) this.#onCrash(fatal);
  }

  /** Which message of a batch has made it fail is not known. */
  #isolate(id: MessageId): void {
    this.#alone.add(id);
    const [oldest] = this.#alone;
    if (this.#alone.size > MOST_ALONE) this.#alone.delete(oldest!);
  }

  #count(claim: Claim, { outcome, error, settled }: DeliveryRecord): void {
    if (this.#stopping && settled && !claim.signal.aborted) this.#report.finished++;
    if (outcome?.kind === "retry" && error === undefined) this.#wake.call();
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

  #interval(): number {
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

function isFailed({ error }: DeliveryRecord): boolean {
  return error !== undefined;
}

const LOG = logOf("claim");
/** As many messages are remembered: one that is forgotten comes in a batch again. */
const MOST_ALONE = 10_000;
