import { CommitHooks } from "./after_commit.ts";
import type { Claim, Settlement } from "./claim/claim_form.ts";
import { inThisContext } from "./clock.ts";
import type { Delivery, DeliveryLog } from "./delivery.ts";
import { describeValue } from "./describe_value.ts";
import { setTransaction } from "./driver/delivery_transaction.ts";
import { AlreadySettledError, ClosedError, DeclarationError } from "./errors.ts";
import type { Headers } from "./headers.ts";
import { type Inside, runOutside } from "./inside_transaction.ts";
import { logOf } from "./log.ts";
import { isOutcome, type Outcome } from "./outcome.ts";
import type { OpenTransaction } from "./held_transaction.ts";
import type { PublishColumns, PublishTime } from "./publish_options.ts";
import { type Published, type Publisher, tellFate } from "./publisher.ts";
import type { AnyQueue, Queue } from "./queue.ts";
import type { DeliveryRecord, PublishRecord, Runtime } from "./runtime.ts";
import { decisionOf } from "./settlement.ts";
import type { StateKey } from "./state.ts";
import type { AnySubscription } from "./subscription.ts";

/** The states that hooks have set. */
export interface States {
  /** What is set under this key; throws `DeclarationError` if nothing is. */
  get<T>(key: StateKey<T>): T;
}

/** What a delivery works with. */
export interface DeliveryContext {
  readonly subscription: AnySubscription;
  readonly states: States;
  readonly runtime: Runtime;
  readonly publisher: Publisher;
  /** The database's name. */
  readonly database: string;
}

/** A delivery as its handler sees it, over the claim that holds its row. */
export class DeliveryInWork implements Delivery {
  readonly queue: string;
  readonly log: DeliveryLog;
  readonly headers: Headers;
  /** The transaction from inside of which its handler runs, once it is open. */
  readonly inside: Inside;
  readonly #context: DeliveryContext;
  readonly #claim: Claim;
  readonly #record: DeliveryRecord;
  readonly #abort = new AbortController();
  #transaction: OpenTransaction | undefined;
  /** What is to be done once its transaction is committed. */
  #hooks: CommitHooks | undefined;
  readonly #published = new Set<AnyQueue>();
  /** What was published in its transaction, as long as that is open. */
  readonly #records: PublishRecord[] = [];
  /** What the handler has begun to publish, and perhaps not waited for. */
  readonly #publishing = new Set<Promise<unknown>>();
  #hasEnded = false;
  #settledAs: Outcome | undefined;
  #settling: Promise<void> | undefined;

  /** Made in the handler's own context, in which listeners of the signal are then called. */
  constructor(
    context: DeliveryContext,
    { claim, record }: { readonly claim: Claim; readonly record: DeliveryRecord },
    headers: Headers,
  ) {
    const queue = context.subscription.queue.name;
    this.queue = queue;
    this.headers = headers;
    this.inside = { pool: context.publisher.pool, isOpen: false, delivery: this };
    this.#context = context;
    this.#claim = claim;
    this.#record = record;
    this.log = logOf("delivery").with({ queue, id: claim.id, attempt: claim.attempt });
    this.#follow(claim.signal);
    if (this.transactional) this.#offerTransaction();
  }

  get id(): Delivery["id"] {
    return this.#claim.id;
  }

  get attempt(): number | undefined {
    return this.#claim.attempt;
  }

  get key(): string | undefined {
    return this.#claim.content.key;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get transactional(): boolean {
    return this.#context.subscription.options.transactional;
  }

  /** Whether its handler has not ended, nor settled its message. */
  get isAtWork(): boolean {
    return !this.#hasEnded;
  }

  /** What the handler itself has settled its message as. */
  get settledAs(): Outcome | undefined {
    return this.#settledAs;
  }

  get<T>(key: StateKey<T>): T {
    return this.#context.states.get(key);
  }

  /** Opens the handler's transaction, unless it is open. */
  async open(): Promise<OpenTransaction> {
    this.#refuseEnded("open a transaction");
    this.#transaction ??= await runOutside(() => this.#claim.transaction());
    this.#hooks ??= new CommitHooks(this.#transaction.handle);
    this.inside.isOpen = true;
    return this.#transaction;
  }

  publish<In>(
    queue: Queue<In, unknown>,
    message: NoInfer<In>,
    options: PublishColumns & PublishTime = {},
  ): Promise<Published> {
    const publishing = this.#publish(queue as AnyQueue, message, options);
    this.#publishing.add(publishing);
    // A handler that does not wait for it must not end the process by it.
    publishing.catch(() => {}).finally(() => this.#publishing.delete(publishing));
    return publishing;
  }

  settle(outcome: Outcome): Promise<void> {
    const settling = this.#settle(outcome);
    this.#settling ??= settling;
    // A handler need not wait for it: what becomes of it is recorded all the same.
    settling.catch(() => {});
    return settling;
  }

  /**
   * The handler has ended: nothing more can be done with its delivery. Resolves when what it has begun,
   * and perhaps not waited for itself, is done.
   */
  async end(): Promise<void> {
    this.#hasEnded = true;
    await Promise.allSettled([...this.#publishing, this.#settling]);
  }

  /**
   * The message is settled, or could not be; whoever waits for what was published with it is told if it
   * is there.
   */
  tell(outcome?: Outcome): void {
    this.inside.isOpen = false;
    const isKept = outcome?.kind === "ack";
    tellFate(this.#records, isKept ? "committed" : "rolled back");
    this.#hooks?.end(isKept);
    if (!isKept) return;
    for (const queue of this.#published) this.#context.publisher.wake(queue);
  }

  /** Tells what its handler was refused, which may not wait for it or may catch it. */
  refused(error: Error): void {
    const { queue, id } = this;
    this.#context.runtime.observe({ type: "refused", queue, id, error });
  }

  async #settle(outcome: Outcome): Promise<void> {
    const { subscription } = this.#context;
    if (!isOutcome(outcome)) {
      throw new TypeError(
        `Cannot settle message ${this.id} of queue "${this.queue}" as ${describeValue(outcome)}: ` +
          `give ack(), retry(), retryAfter(…), drop() or deadLetter()`,
      );
    }
    if (subscription.options.batch !== undefined && subscription.queue.inbox.form === "row lock") {
      throw new DeclarationError(
        `Cannot settle message ${this.id} of queue "${this.queue}" by itself: one transaction ` +
          `holds the rows of its batch; return the outcomes`,
      );
    }
    const decision = decisionOf(outcome, subscription, this.attempt);
    // Only what was published before can be part of it.
    if (this.transactional) this.#hasEnded = true;
    await Promise.allSettled(this.#publishing);
    await this.#context.runtime.reach("before settle", this.#record);
    await this.#carryOut(decision.settlement!);
    this.#settledAs = decision.outcome;
    this.tell(decision.outcome);
    await this.#context.runtime.reach("after settle", this.#record);
  }

  async #carryOut(settlement: Settlement): Promise<void> {
    try {
      await runOutside(() => this.#claim.settle(settlement));
    } catch (error) {
      if (error instanceof AlreadySettledError) this.refused(error);
      throw error;
    }
  }

  async #publish(
    queue: AnyQueue,
    message: unknown,
    options: PublishColumns & PublishTime,
  ): Promise<Published> {
    const { publisher } = this.#context;
    this.#refuseEnded(`publish to queue "${queue.name}"`);
    if (!this.transactional) return await publisher.publish(queue, message, options);
    const transaction = await this.open();
    const published = await publisher.publishIn(
      transaction,
      this.#records,
      queue,
      message,
      options,
    );
    this.#published.add(queue);
    return published;
  }

  #refuseEnded(what: string): void {
    if (!this.#hasEnded) return;
    const error = new ClosedError(
      `Cannot ${what}: the delivery of message ${this.id} of queue "${this.queue}" has ended; ` +
        `wait in the handler for what it does`,
    );
    // Whoever has not waited for its own work does not see what it rejects with either.
    this.log.error("A handler goes on after its end: {error}", { error });
    this.refused(error);
    throw error;
  }

  #offerTransaction(): void {
    const current = (): unknown => this.#transaction?.handle;
    setTransaction(this, {
      database: this.#context.database,
      get handle(): unknown {
        return current();
      },
      open: async () => (await this.open()).handle,
    });
  }

  #follow(signal: AbortSignal): void {
    const abort = inThisContext(() => this.#abort.abort(signal.reason));
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  }
}
